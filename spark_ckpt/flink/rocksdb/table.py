"""Block-based tables, RocksDB's `.sst` files (`block_based_table_reader.cc`, `format.cc`).

table   data blocks, meta blocks, meta index, index, footer
footer  u8 checksum type, meta index and index as block handles, zeros up to byte 41, u32 format version, u64 magic
        number: 53 bytes. Format version 0: without checksum type and format version, 48 bytes, another magic number
entry   key: the user's key, then u64 little-endian: sequence number * 256 + type
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from spark_ckpt.flink.rocksdb import checksums
from spark_ckpt.flink.rocksdb.blocks import BlockHandle, BlockReader, entries, index_handles, read_handle
from spark_ckpt.flink.rocksdb.coding import INTERNAL_BYTES, Decoder
from spark_ckpt.flink.rocksdb.errors import RocksDbFormatError, UnsupportedRocksDbError
from spark_ckpt.flink.rocksdb.files import RandomAccess, Window

_MAGIC, _LEGACY_MAGIC = 0x88E241B785F4CFF7, 0xDB4775248B80FB57
_FOOTER_BYTES, _LEGACY_FOOTER_BYTES = 53, 48
_NEWEST_FORMAT = 5
_SIZES_SINCE = 2

_PROPERTIES = b"rocksdb.properties"
_RANGE_DELETIONS = b"rocksdb.range_del"
_DICTIONARY = b"rocksdb.compression_dict"
_INDEX_TYPE = b"rocksdb.block.based.table.index.type"
_IS_DELTA_ENCODED = b"rocksdb.index.value.is.delta.encoded"
_INGESTED_VERSION = b"rocksdb.external_sst_file.version"
_INGESTED_NUMBER = b"rocksdb.external_sst_file.global_seqno"
_BINARY, _HASH, _PARTITIONED = 0, 1, 2

_READ_AHEAD = 1 << 20
_INGESTED_SINCE = 2
"""Version of ingested tables since which all of their entries have one sequence number."""


class Entry(NamedTuple):
    """Entry of a table.

    Args:
        key: the user's key.
        sequence: sequence number; of two entries of a key, the larger one is newer.
        kind: value type, see `merge`.
        value: value, or operand of a merge.
    """

    key: bytes
    sequence: int
    kind: int
    value: bytes


class RangeDeletion(NamedTuple):
    """Deletion of all keys from `begin` until before `end` that are older than `sequence`."""

    begin: bytes
    end: bytes
    sequence: int

    def within(self, smallest: bytes, end: bytes) -> RangeDeletion:
        """The part of this deletion that a table states which has keys of this range only.

        A table may state it for keys of its neighbours as well (RocksDB: `TruncatedRangeDelIterator`). Newer keys there
        may have lost their sequence numbers.
        """
        return RangeDeletion(max(self.begin, smallest), min(self.end, end), self.sequence)


class Table:
    """An open table: its footer, its properties and its range deletions are read, its rows are not.

    Args:
        file: the `.sst` file.
        largest_sequence: its largest sequence number by MANIFEST, that of all entries of an ingested table; None if
            unknown.

    Raises:
        RocksDbFormatError: the file is damaged, or no such table.
        UnsupportedRocksDbError: a table of a newer format, or with a compression dictionary.
    """

    def __init__(self, file: RandomAccess, largest_sequence: int | None = None) -> None:
        self._file = file
        checksum, version, meta_index, self._index = _footer(file)
        self._blocks = BlockReader(file, checksum, version >= _SIZES_SINCE)
        self._meta = {
            key: read_handle(Decoder(value, file.name, meta_index.offset))
            for key, value in entries(self._blocks.read(meta_index))
        }
        if _DICTIONARY in self._meta:
            raise UnsupportedRocksDbError(file.name, "a compression dictionary")
        self._properties = self._read_properties(meta_index)
        self._sequence = self._ingested_sequence(largest_sequence)

    @property
    def properties(self) -> Mapping[bytes, bytes]:
        """Properties of the table (`TableProperties`)."""
        return self._properties

    def entries(self) -> Iterator[Entry]:
        """All point entries, in order of key and from newer to older."""
        window = Window(self._file, _READ_AHEAD)
        for handle in self._data_blocks():
            for key, value in entries(self._blocks.read(handle, window)):
                yield self._entry(key, value, handle)

    def range_deletions(self) -> Iterator[RangeDeletion]:
        """All range deletions."""
        if (handle := self._meta.get(_RANGE_DELETIONS)) is not None:
            for key, value in entries(self._blocks.read(handle)):
                entry = self._entry(key, value, handle)
                yield RangeDeletion(entry.key, entry.value, entry.sequence)

    def _entry(self, key: bytes, value: bytes, handle: BlockHandle) -> Entry:
        if len(key) < INTERNAL_BYTES:
            raise RocksDbFormatError(self._file.name, handle.offset, "key", f"an internal key of {len(key)} bytes")
        packed = int.from_bytes(key[-INTERNAL_BYTES:], "little")
        sequence = packed >> 8 if self._sequence is None else self._sequence
        return Entry(key[:-INTERNAL_BYTES], sequence, packed & 0xFF, value)

    def _data_blocks(self) -> Iterator[BlockHandle]:
        is_delta_encoded = self._varint(_IS_DELTA_ENCODED) == 1
        kind = int.from_bytes(self._properties.get(_INDEX_TYPE, b""), "little")
        if kind not in (_BINARY, _HASH, _PARTITIONED):
            raise UnsupportedRocksDbError(self._file.name, f"index type {kind}")
        top = index_handles(self._blocks.read(self._index), is_delta_encoded)
        if kind != _PARTITIONED:
            yield from top
            return
        for partition in top:
            yield from index_handles(self._blocks.read(partition), is_delta_encoded)

    def _read_properties(self, meta_index: BlockHandle) -> dict[bytes, bytes]:
        handle = self._meta.get(_PROPERTIES)
        if handle is None:
            raise RocksDbFormatError(self._file.name, meta_index.offset, "meta index", "a table without properties")
        return dict(entries(self._blocks.read(handle)))

    def _ingested_sequence(self, largest: int | None) -> int | None:
        """Sequence number of all entries of a table that was written outside and ingested; None for other tables."""
        version = int.from_bytes(self._properties.get(_INGESTED_VERSION, b""), "little")
        if version < _INGESTED_SINCE:
            return None
        written = int.from_bytes(self._properties.get(_INGESTED_NUMBER, b""), "little")
        if largest is None or written == largest:
            return written
        if written != 0:
            reason = f"the table has sequence number {written}, and {largest} by MANIFEST"
            raise RocksDbFormatError(self._file.name, 0, "global sequence number", reason)
        return largest  # newer releases do not write it into the table

    def _varint(self, name: bytes) -> int:
        value = self._properties.get(name)
        return 0 if value is None else Decoder(value, self._file.name).varint(name.decode())


def _footer(file: RandomAccess) -> tuple[int, int, BlockHandle, BlockHandle]:
    """Checksum type, format version, and the places of meta index and index."""
    size = min(file.size, _FOOTER_BYTES)
    start = file.size - size
    data = Decoder(file.read(start, size), file.name, start, max(0, size - 8))
    magic = data.u64("magic number")
    if magic == _LEGACY_MAGIC and size >= _LEGACY_FOOTER_BYTES:
        data.position = size - _LEGACY_FOOTER_BYTES
        return checksums.CRC32C, 0, read_handle(data), read_handle(data)
    if magic != _MAGIC or size < _FOOTER_BYTES:
        data.position = max(0, size - 8)
        data.fail("magic number", f"{magic:#018x} is not the magic number of a block-based table")
    data.position = size - 12
    version = data.u32("format version")
    if version > _NEWEST_FORMAT:
        raise UnsupportedRocksDbError(file.name, f"format version {version}")
    data.position = 0
    checksum = data.raw(1, "checksum type")[0]
    if checksum > checksums.XXH3:
        raise UnsupportedRocksDbError(file.name, f"checksum type {checksum}")
    return checksum, version, read_handle(data), read_handle(data)
