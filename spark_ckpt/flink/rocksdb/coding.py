"""Integers and slices in RocksDB's encoding (`util/coding.h`), read with bounds checks."""

from __future__ import annotations

import struct
from typing import NoReturn

from spark_ckpt.flink.rocksdb.errors import RocksDbFormatError

INTERNAL_BYTES = 8
"""Bytes behind the user's key in an internal key: sequence number and value type."""

_MAX_VARINT = 10


class Decoder:
    """Position in a part of a file.

    Args:
        content: bytes of the part.
        path: name of the file.
        origin: offset of the part in the file; of a compressed block, the offset of the block.
        position: first byte to read.
        end: byte after the last one to read.
    """

    __slots__ = ("content", "end", "origin", "path", "position")

    def __init__(self, content: bytes, path: str, origin: int = 0, position: int = 0, end: int | None = None) -> None:
        self.content = content
        self.path = path
        self.origin = origin
        self.position = position
        self.end = len(content) if end is None else end

    @property
    def at_end(self) -> bool:
        """True if all bytes are read."""
        return self.position >= self.end

    def fail(self, field: str, reason: str) -> NoReturn:
        """Raises a `RocksDbFormatError` at this position."""
        raise RocksDbFormatError(self.path, self.origin + self.position, field, reason)

    def raw(self, length: int, field: str) -> bytes:
        """The next bytes."""
        begin = self.position
        if length > self.end - begin:
            self.fail(field, f"{length} bytes are expected, but {self.end - begin} are left")
        self.position = begin + length
        return self.content[begin : self.position]

    def varint(self, field: str) -> int:
        """An unsigned integer of up to 64 bits: 7 bits a byte, lowest first."""
        content, position, end = self.content, self.position, min(self.end, self.position + _MAX_VARINT)
        value = shift = 0
        byte = 0x80
        while position < end and byte >= 0x80:
            byte = content[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if byte >= 0x80 or value >> 64:
            self.fail(field, "an integer is cut off or longer than 64 bits")
        self.position = position
        return value

    def zigzag(self, field: str) -> int:
        """A signed integer whose lowest bit is the sign."""
        value = self.varint(field)
        return value >> 1 ^ -(value & 1)

    def prefixed(self, field: str) -> bytes:
        """Bytes after their length."""
        return self.raw(self.varint(field), field)

    def u32(self, field: str) -> int:
        """32 bits, little-endian."""
        return int(struct.unpack("<I", self.raw(4, field))[0])

    def u64(self, field: str) -> int:
        """64 bits, little-endian."""
        return int(struct.unpack("<Q", self.raw(8, field))[0])
