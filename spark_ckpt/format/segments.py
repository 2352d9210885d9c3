"""Segments: sequences of blocks of keyed state, one per key group (docs/protocol.md, section 2)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import google_crc32c
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.format.errors import SegmentError
from spark_ckpt.metadata.data_input import DataInput

MAGIC = 0x434B4247
"""Magic number at the start of a block: "CKBG"."""

FORMAT = 1
"""Version of the block format; the only one so far."""

HEADER_BYTES = 32
"""Size of a block's header in bytes."""

KIND_AT = 5
"""Offset of the kind in a block's header."""

MAX_BODY_BYTES = 1 << 30
"""Largest body of a block in bytes, before compression."""

MIN_CHUNK_BITS, MAX_CHUNK_BITS = 10, 24
"""Smallest and largest logarithm to base 2 of the bytes of a chunk."""

_HEADER = struct.Struct(">iBBBBiqii")
_CRC = struct.Struct(">I")
_I32 = struct.Struct(">i")

_LISTS, _KEYS_OF_ONE_LENGTH, _VALUES_OF_ONE_LENGTH, _APPENDS = 1, 2, 4, 8
_REMOVED = -1


_UNCOMPRESSED = 0
_CODECS = {1: "lz4_raw", 2: "zstd"}
"""Arrow's names of the codecs, by their number in a block's header."""


class SegmentKind(IntEnum):
    """Kind of a segment."""

    BASE = 1
    DELTA = 2


@dataclass(frozen=True, slots=True)
class Section:
    """Entries of one column family in one key group.

    Args:
        entries: pairs of key and value, with None for a removed key; with `lists`, a value is the tuple of its rows.
        column_family: name of the column family; "" for the default one.
        lists: True if values are lists.
        appends: True if the rows are appended to existing lists; only in a delta, with `lists`.
    """

    entries: tuple[tuple[bytes, bytes | tuple[bytes, ...] | None], ...]
    column_family: str = ""
    lists: bool = False
    appends: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RawSection:
    """A section with its entries still encoded as in the block, for bulk reads.

    Args:
        column_family: name of the column family; "" for the default one.
        lists: True if values are lists.
        appends: True if the rows are appended to existing lists.
        key_lengths: length of each key in bytes, int64.
        value_lengths: length of each value in bytes, int64; -1 for a removed key.
        keys: concatenated keys.
        values: concatenated values.
        keys_at: offset of `keys` from the start of the block, before compression.
        values_at: offset of `values` from the start of the block, before compression.
    """

    column_family: str
    lists: bool
    appends: bool
    key_lengths: NDArray[np.int64]
    value_lengths: NDArray[np.int64]
    keys: bytes
    values: bytes
    keys_at: int
    values_at: int

    def decode(self) -> Section:
        """Section with decoded entries.

        Raises:
            ValueError: `lists` is set, and a value is not a list.
        """
        keys = _split(self.keys, self.key_lengths)
        present = iter(_split(self.values, self.value_lengths[self.value_lengths >= 0]))
        values = [None if length == _REMOVED else self._value(next(present)) for length in self.value_lengths.tolist()]
        return Section(tuple(zip(keys, values, strict=True)), self.column_family, self.lists, self.appends)

    def _value(self, value: bytes) -> bytes | tuple[bytes, ...]:
        if not self.lists:
            return value
        return tuple(value[start:end] for start, end in list_rows(value, 0, len(value), appended=self.appends))


@dataclass(frozen=True, slots=True)
class Block:
    """Entries of one key group.

    Args:
        kind: kind of the segment.
        key_group: the key group.
        version: version of the state; for a delta, the version after it is applied.
        sections: one section per column family with entries; in a delta, a second one for appended rows.
    """

    kind: SegmentKind
    key_group: int
    version: int
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """Fixed part of a block; its checksum, which also covers the body, has been verified.

    Args:
        kind: kind of the segment.
        key_group: the key group.
        version: version of the state.
        sections: number of sections.
        body_length: bytes of the body in the file.
        codec: number of its codec.
        chunk_bits: logarithm to base 2 of the bytes of a chunk before compression; 0 if the body is not cut.
    """

    kind: SegmentKind
    key_group: int
    version: int
    sections: int
    body_length: int
    codec: int = _UNCOMPRESSED
    chunk_bits: int = 0

    @property
    def length(self) -> int:
        """Size of the whole block in bytes."""
        return HEADER_BYTES + self.body_length


def check_block(data: bytes, position: int, path: str, start: int = 0) -> BlockHeader:
    """Verifies a block without decoding its sections.

    Args:
        data: bytes that contain the block.
        position: offset of the block in `data`.
        path: name of the file, for errors.
        start: offset of `data` in the file.

    Raises:
        SegmentError: the bytes are not a block, or the block is damaged.
    """
    at = start + position
    if len(data) < position + HEADER_BYTES:
        raise SegmentError(path, at, f"expected a block of at least 32 bytes, found {max(0, len(data) - position)}")
    magic, fmt, kind, codec, chunk_bits, key_group, version, sections, length = _HEADER.unpack_from(data, position)
    if magic != MAGIC:
        raise SegmentError(path, at, f"not a block: magic number {magic & 0xFFFFFFFF:#010x} instead of {MAGIC:#010x}")
    if fmt != FORMAT:
        raise SegmentError(path, at + 4, f"unknown block format version {fmt}; {FORMAT} is supported")
    if length < 0 or len(data) < position + HEADER_BYTES + length:
        raise SegmentError(
            path, at + 24, f"the block's body has {length} bytes, but only {len(data) - position - HEADER_BYTES} follow"
        )
    (stored,) = _CRC.unpack_from(data, position + 28)
    view = memoryview(data)
    body = bytes(view[position + HEADER_BYTES : position + HEADER_BYTES + length])
    found = _checksum(bytes(view[position : position + 28]), body)
    if stored != found:
        raise SegmentError(path, at + 28, f"the block is damaged: checksum {found:#010x} instead of {stored:#010x}")
    if codec != _UNCOMPRESSED and codec not in _CODECS:
        raise SegmentError(path, at + 6, f"unknown block codec {codec}")
    if chunk_bits != 0 and (codec == _UNCOMPRESSED or not MIN_CHUNK_BITS <= chunk_bits <= MAX_CHUNK_BITS):
        raise SegmentError(path, at + 7, f"chunks of 2^{chunk_bits} bytes in a block with codec {codec}")
    if kind not in (SegmentKind.BASE, SegmentKind.DELTA):
        raise SegmentError(path, at + 5, f"unknown block kind {kind}; 1 (base) and 2 (delta) are supported")
    return BlockHeader(SegmentKind(kind), key_group, version, sections, length, codec, chunk_bits)


def decode_block(data: bytes, position: int, path: str, start: int = 0) -> Block:
    """Reads and decodes a block; takes the arguments of `check_block`.

    Raises:
        SegmentError: the bytes are not a block, the block is damaged, or its sections do not fill its body.
    """
    header, raw = read_block(data, position, path, start)
    try:
        sections = tuple(section.decode() for section in raw)
    except ValueError as e:
        raise SegmentError(path, start + position, f"a section is cut off or malformed: {e}") from e
    return Block(header.kind, header.key_group, header.version, sections)


def read_block(data: bytes, position: int, path: str, start: int = 0) -> tuple[BlockHeader, tuple[RawSection, ...]]:
    """Reads the sections of a block without decoding their entries; takes the arguments of `check_block`.

    Raises:
        SegmentError: the bytes are not a block, the block is damaged, or its sections do not fill its body.
    """
    header = check_block(data, position, path, start)
    body_start = position + HEADER_BYTES
    content = data[body_start : body_start + header.body_length]
    if header.codec != _UNCOMPRESSED:
        try:
            content = _decompressed(content, _CODECS[header.codec], header.chunk_bits)
        except (ValueError, struct.error, OSError) as e:
            raise SegmentError(path, start + body_start, f"the body cannot be decompressed: {e}") from e
    body = DataInput(content, path)
    try:
        sections = tuple(_read_section(body, header.kind) for _ in range(header.sections))
    except (ValueError, struct.error) as e:
        reason = getattr(e, "reason", str(e))
        raise SegmentError(
            path, start + body_start + body.position, f"a section is cut off or malformed: {reason}"
        ) from e
    if body.position != len(content):
        left = len(content) - body.position
        raise SegmentError(
            path, start + body_start + body.position, f"{left} bytes after the last section of the block"
        )
    return header, sections


def list_rows(data: bytes, start: int, end: int, *, appended: bool) -> list[tuple[int, int]]:
    """Start and end offsets of each row of a list value in `data`.

    Args:
        data: bytes that contain the value.
        start: start offset of the value.
        end: end offset of the value, exclusive.
        appended: True if the value consists of rows only, without a leading row count.

    Raises:
        ValueError: the value is not a list.
    """
    rows, position = [], start if appended else start + 4
    while position < end:
        length = _I32.unpack_from(data, position)[0] if position + 4 <= end else -1
        if length < 0 or position + 4 + length > end:
            raise ValueError(f"a list value of {end - start} bytes holds a row of {length} bytes")
        rows.append((position + 4, position + 4 + length))
        position += 4 + length
    if not appended:
        count = _I32.unpack_from(data, start)[0] if start + 4 <= end else -1
        if len(rows) != count:
            raise ValueError(f"a list value of {count} rows holds {len(rows)}")
    return rows


def _decompressed(body: bytes, codec: str, chunk_bits: int) -> bytes:
    """Body of a block with this codec.

    Raises:
        ValueError: it states a wrong length.
        struct.error: it is shorter than that.
        OSError: it is not compressed by the codec.
    """
    (length,) = _I32.unpack_from(body)
    if not 0 <= length <= MAX_BODY_BYTES:
        raise ValueError(f"it states a length of {length} bytes")
    if not chunk_bits:
        return _restored(body[_I32.size :], length, codec)
    chunk = 1 << chunk_bits
    count = -(-length // chunk)
    stored = struct.unpack_from(f">{count}i", body, _I32.size)
    starts = np.cumsum((_I32.size * (1 + count), *stored), dtype=np.int64).tolist()
    if starts[-1] != len(body) or not all(0 < size <= chunk for size in stored):
        raise ValueError(f"its chunks end at {starts[-1]} of {len(body)} bytes, or one has no bytes or too many")
    plain = (min(chunk, length - i * chunk) for i in range(count))
    return b"".join(
        body[start : start + size] if size == bytes_of else _restored(body[start : start + size], bytes_of, codec)
        for start, size, bytes_of in zip(starts, stored, plain, strict=False)
    )


def _restored(data: bytes, length: int, codec: str) -> bytes:
    content = pa.decompress(data, decompressed_size=length, codec=codec, asbytes=True)
    if len(content) != length:
        raise ValueError(f"it has {len(content)} bytes and states {length}")
    return bytes(content)


def _checksum(start: bytes, body: bytes) -> int:
    return int(google_crc32c.extend(google_crc32c.value(start), body))


def _read_section(body: DataInput, kind: SegmentKind) -> RawSection:
    name = body.utf("column_family")
    flags = body.i8("flags")
    if flags & ~(_LISTS | _KEYS_OF_ONE_LENGTH | _VALUES_OF_ONE_LENGTH | _APPENDS):
        raise ValueError(f"unknown flags {flags:#x}")
    lists, appends = bool(flags & _LISTS), bool(flags & _APPENDS)
    if appends and (kind is SegmentKind.BASE or not lists):
        raise ValueError("rows are appended in a base or to a single value")
    count = body.i32("entries")
    if count < 0:
        raise ValueError(f"{count} entries")
    key_lengths = _read_lengths(body, count, bool(flags & _KEYS_OF_ONE_LENGTH), 0)
    minimum = 0 if kind is SegmentKind.BASE or appends else _REMOVED
    value_lengths = _read_lengths(body, count, bool(flags & _VALUES_OF_ONE_LENGTH), minimum)
    keys_at = HEADER_BYTES + body.position
    keys = body.raw(int(key_lengths.sum()), "keys")
    values_at = HEADER_BYTES + body.position
    values = body.raw(int(value_lengths[value_lengths > 0].sum()), "values")
    return RawSection(name, lists, appends, key_lengths, value_lengths, keys, values, keys_at, values_at)


def _read_lengths(body: DataInput, count: int, one: bool, minimum: int) -> NDArray[np.int64]:
    data = body.raw(4 if one else 4 * count, "lengths")
    lengths = np.frombuffer(data, ">i4").astype(np.int64)
    if lengths.size and lengths.min() < minimum:
        raise ValueError(f"negative length {lengths.min()}")
    return np.broadcast_to(lengths, count) if one else lengths


def _split(data: bytes, lengths: NDArray[np.int64]) -> list[bytes]:
    ends = np.cumsum(lengths)
    return [data[start:end] for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)]
