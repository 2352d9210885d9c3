"""Blocks of a table: checksum, compression, and the entries inside (`block_based_table_builder.cc`, `block.cc`).

block   content, u8 compression, u32 checksum
content entries, restart points, [hash index,] footer
entry   varint bytes of the key shared with the entry before, varint further bytes of the key, varint length of the
        value, further bytes of the key, value
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_ckpt.flink.rocksdb import checksums
from spark_ckpt.flink.rocksdb.coding import Decoder
from spark_ckpt.flink.rocksdb.errors import RocksDbFormatError, UnsupportedRocksDbError
from spark_ckpt.flink.rocksdb.files import RandomAccess, Window

TRAILER_BYTES = 5
MAX_BLOCK_BYTES = 1 << 28
"""Largest block, compressed or not. A block has one entry at least, so it exceeds the usual 4 KiB if a value does."""

_CODECS = {1: "snappy", 4: "lz4_raw", 5: "lz4_raw", 7: "zstd"}
"""Compression types (`CompressionType` in `compression_type.h`): LZ4 and LZ4HC have one format."""

_HASH_INDEX = 1 << 31
_RESTARTS = _HASH_INDEX - 1


@dataclass(frozen=True, slots=True)
class BlockHandle:
    """Place of a block: offset and bytes, without its trailer."""

    offset: int
    size: int


def read_handle(data: Decoder) -> BlockHandle:
    """The next block handle."""
    return BlockHandle(data.varint("block offset"), data.varint("block size"))


class BlockReader:
    """Reader of a table's blocks.

    Args:
        file: the table.
        checksum: type of its checksums.
        has_sizes: whether compressed blocks begin with a varint of their size, as in all tables since format version 2.
    """

    def __init__(self, file: RandomAccess, checksum: int, has_sizes: bool) -> None:
        self._file = file
        self._checksum = checksum
        self._has_sizes = has_sizes

    def read(self, handle: BlockHandle, window: Window | None = None) -> Decoder:
        """Content of a block.

        Raises:
            RocksDbFormatError: the block is damaged, or is not inside the file.
            UnsupportedRocksDbError: an unknown compression.
        """
        file, offset, size = self._file, handle.offset, handle.size
        if size > MAX_BLOCK_BYTES or offset + size + TRAILER_BYTES > file.size:
            raise RocksDbFormatError(
                file.name, offset, "block", f"a block of {size} bytes, in a file of {file.size} bytes"
            )
        stored = (window or file).read(offset, size + TRAILER_BYTES)
        content, kind = stored[:size], stored[size]
        if self._checksum != checksums.NONE:
            expected = int.from_bytes(stored[size + 1 :], "little")
            if checksums.checksum_of(self._checksum, content, kind) != expected:
                raise RocksDbFormatError(
                    file.name, offset, "block", "the block is damaged: its checksum does not match"
                )
        return Decoder(content if kind == 0 else self._decompressed(handle, kind, content), file.name, offset)

    def _decompressed(self, handle: BlockHandle, kind: int, content: bytes) -> bytes:
        import pyarrow as pa

        codec = _CODECS.get(kind)
        if codec is None or not (self._has_sizes or codec == "snappy"):
            raise UnsupportedRocksDbError(self._file.name, f"compression {kind}")
        data = Decoder(content, self._file.name, handle.offset)
        size = data.varint("decompressed size")
        if size > MAX_BLOCK_BYTES:
            data.fail("decompressed size", f"a block of {size} bytes; the maximum is {MAX_BLOCK_BYTES}")
        # Snappy has the size itself, which its decoder reads again.
        body = content if codec == "snappy" else content[data.position :]
        try:
            return bytes(pa.decompress(body, decompressed_size=size, codec=codec, asbytes=True))
        except (OSError, ValueError) as e:
            data.fail("block", f"the block cannot be decompressed: {e}")


def entries(block: Decoder) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block of entries, in order."""
    data = _entries_of(block)
    key = b""
    while not data.at_end:
        key = _key(data, key, data.varint("shared bytes"), data.varint("key length"), value := data.varint("value"))
        yield key, data.raw(value, "value")


def index_handles(block: Decoder, is_delta_encoded: bool) -> Iterator[BlockHandle]:
    """Block handles of an index block.

    Args:
        block: content of the index block.
        is_delta_encoded: whether a value follows the one before as a difference of its size, without a length.
    """
    if not is_delta_encoded:
        for _, value in entries(block):
            yield read_handle(Decoder(value, block.path, block.origin))
        return
    data = _entries_of(block)
    handle = BlockHandle(0, 0)
    while not data.at_end:
        shared = data.varint("shared bytes")
        data.raw(data.varint("key length"), "key")
        if shared == 0:
            handle = read_handle(data)
        else:
            offset = handle.offset + handle.size + TRAILER_BYTES
            handle = BlockHandle(offset, handle.size + data.zigzag("block size"))
            if handle.size < 0:
                data.fail("block size", f"a block of {handle.size} bytes")
        yield handle


def _key(data: Decoder, before: bytes, shared: int, more: int, value: int) -> bytes:
    if shared > len(before):
        data.fail("key", f"{shared} bytes are shared with a key of {len(before)} bytes")
    if more + value > data.end - data.position:
        data.fail("key", "an entry is longer than its block")
    return before[:shared] + data.raw(more, "key")


def _entries_of(block: Decoder) -> Decoder:
    """The entries of a block, without what follows them."""
    content, size = block.content, len(block.content)
    tail = Decoder(content, block.path, block.origin, max(0, size - 4))
    footer = tail.u32("block footer")
    end = size - 4 - 4 * (footer & _RESTARTS)
    if footer & _HASH_INDEX:
        if size < 6:
            tail.fail("block footer", "a hash index in a block of less than 6 bytes")
        end -= 2 + int.from_bytes(content[size - 6 : size - 4], "little")
    if end < 0:
        tail.fail("block footer", f"{footer & _RESTARTS} restart points in a block of {size} bytes")
    return Decoder(content, block.path, block.origin, 0, end)
