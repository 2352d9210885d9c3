"""MANIFEST: which tables are live, in which column family and level (`version_edit.cc`, `log_format.h`).

log     blocks of 32 KiB; a record does not cross a block: u32 masked CRC-32C of type and content, u16 length, u8
        type (1 whole, 2 first, 3 middle, 4 last part; with 4 more, a u32 log number follows), content
edit    fields, each with a varint tag
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from spark_ckpt.flink.rocksdb.checksums import masked_crc32c
from spark_ckpt.flink.rocksdb.coding import INTERNAL_BYTES, Decoder
from spark_ckpt.flink.rocksdb.errors import RocksDbFormatError, UnsupportedRocksDbError
from spark_ckpt.flink.rocksdb.files import RandomAccess

COMPARATOR = "leveldb.BytewiseComparator"
"""The order of keys that Flink uses: by unsigned bytes."""

_LOG_BLOCK = 1 << 15
_HEADER, _RECYCLABLE_HEADER = 7, 11
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4

_DEFAULT_FAMILY = 0

# Tags of fields (`Tag` in `version_edit.h`).
_TAG_COMPARATOR = 1
_TAG_COMPACT_CURSOR = 5
_TAG_DELETED_FILE = 6
_TAG_NEW_FILE, _TAG_NEW_FILE_2, _TAG_NEW_FILE_3, _TAG_NEW_FILE_4 = 7, 100, 102, 103
_TAGS_NUMBER = frozenset({2, 3, 4, 9, 10, 203, 300})
_TAG_FAMILY, _TAG_FAMILY_ADDED, _TAG_FAMILY_DROPPED = 200, 201, 202
_SAFE_TO_IGNORE = 1 << 13

_RANGE_END = b"\x0f" + b"\xff" * 7
"""Type of a range deletion, and the largest sequence number (`kRangeTombstoneSentinel`)."""

# Tags of the custom fields of a new file (`NewFileCustomTag`).
_CUSTOM_END = 1
_CUSTOM_PATH_ID = 65
_CUSTOM_MUST_KNOW = 1 << 6


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table that MANIFEST names.

    Args:
        number: number of its file.
        level: level; only tables of level 0 may overlap.
        smallest: smallest key, without sequence number and type.
        end: key after its largest one. Range deletions in the table count below it only.
        largest_sequence: largest sequence number of its entries; None if MANIFEST does not tell.
    """

    number: int
    level: int
    smallest: bytes
    end: bytes
    largest_sequence: int | None

    @property
    def file_name(self) -> str:
        """Name of its file."""
        return f"{self.number:06d}.sst"


@dataclass(slots=True)
class ColumnFamily:
    """A column family.

    Args:
        name: name; Flink names it after the state.
        tables: live tables by number.
    """

    name: str
    tables: dict[int, LiveTable] = field(default_factory=dict)


def read_manifest(file: RandomAccess) -> dict[str, ColumnFamily]:
    """Column families by name.

    Raises:
        RocksDbFormatError: the file is damaged, or no MANIFEST.
        UnsupportedRocksDbError: blob files, another order of keys, or a field of a newer release.
    """
    families = {_DEFAULT_FAMILY: ColumnFamily("default")}
    for record in _records(file):
        _apply(record, families)
    by_name = {family.name: family for family in families.values()}
    if len(by_name) < len(families):
        raise RocksDbFormatError(file.name, 0, "column family", "two column families have one name")
    return by_name


def _records(file: RandomAccess) -> Iterator[Decoder]:
    """Records of the log, whole."""
    content = file.read(0, file.size)
    position, parts, began = 0, list[bytes](), 0
    while position < len(content):
        left = _LOG_BLOCK - position % _LOG_BLOCK
        if left < _HEADER or not any(content[position : position + _HEADER]):
            position += left  # zeros up to the end of the block
            continue
        data = Decoder(content, file.name, 0, position)
        checksum, length, kind = (
            data.u32("checksum"),
            int.from_bytes(data.raw(2, "length"), "little"),
            data.raw(1, "type"),
        )
        is_recyclable = kind[0] > _LAST
        part_kind = kind[0] - _LAST if is_recyclable else kind[0]
        covered = kind + data.raw((_RECYCLABLE_HEADER - _HEADER) * is_recyclable + length, "record")
        if masked_crc32c(covered) != checksum or not _WHOLE <= part_kind <= _LAST:
            raise RocksDbFormatError(
                file.name, position, "record", "the record is damaged: its checksum does not match"
            )
        if (part_kind in (_WHOLE, _FIRST)) == bool(parts):
            raise RocksDbFormatError(file.name, position, "record", "a part of a record is missing")
        began = began if parts else position
        parts.append(covered[1 + (_RECYCLABLE_HEADER - _HEADER) * is_recyclable :])
        position = data.position
        if part_kind in (_WHOLE, _LAST):
            yield Decoder(b"".join(parts), file.name, began)
            parts = []
    if parts:
        raise RocksDbFormatError(file.name, began, "record", "the last record is cut off")


def _apply(edit: Decoder, families: dict[int, ColumnFamily]) -> None:
    """Applies the fields of an edit. The family may be named behind them."""
    family = _DEFAULT_FAMILY
    added: list[LiveTable] = []
    deleted: list[int] = []
    name: str | None = None
    is_dropped = False
    while not edit.at_end:
        tag = edit.varint("tag")
        if tag in _TAGS_NUMBER:
            edit.varint("number")
        elif tag == _TAG_COMPARATOR:
            if (order := edit.prefixed("comparator").decode(errors="replace")) != COMPARATOR:
                raise UnsupportedRocksDbError(edit.path, f"the order of keys '{order}'")
        elif tag == _TAG_COMPACT_CURSOR:
            edit.varint("level")
            edit.prefixed("cursor")
        elif tag == _TAG_DELETED_FILE:
            edit.varint("level")
            deleted.append(edit.varint("file number"))
        elif tag in (_TAG_NEW_FILE, _TAG_NEW_FILE_2, _TAG_NEW_FILE_3, _TAG_NEW_FILE_4):
            added.append(_new_file(edit, tag))
        elif tag == _TAG_FAMILY:
            family = edit.varint("column family")
        elif tag == _TAG_FAMILY_ADDED:
            name = edit.prefixed("column family").decode(errors="surrogateescape")
        elif tag == _TAG_FAMILY_DROPPED:
            is_dropped = True
        elif tag & _SAFE_TO_IGNORE:
            edit.prefixed("field")
        else:
            raise UnsupportedRocksDbError(edit.path, f"field {tag} of MANIFEST")
    if name is not None:
        families[family] = ColumnFamily(name)
    if family not in families:
        edit.fail("column family", f"column family {family} was never added")
    if is_dropped:
        del families[family]
        return
    tables = families[family].tables
    for number in deleted:
        tables.pop(number, None)
    tables.update((table.number, table) for table in added)


def _new_file(edit: Decoder, tag: int) -> LiveTable:
    level, number = edit.varint("level"), edit.varint("file number")
    if tag == _TAG_NEW_FILE_3:
        edit.varint("path id")
    edit.varint("file size")
    smallest, largest = edit.prefixed("smallest key"), edit.prefixed("largest key")
    if min(len(smallest), len(largest)) < INTERNAL_BYTES:
        edit.fail("smallest key", f"an internal key of less than {INTERNAL_BYTES} bytes")
    largest_sequence = None
    if tag != _TAG_NEW_FILE:
        edit.varint("smallest sequence number")
        largest_sequence = edit.varint("largest sequence number")
    if tag == _TAG_NEW_FILE_4:
        while (custom := edit.varint("custom tag")) != _CUSTOM_END:
            edit.prefixed("custom field")
            if custom & _CUSTOM_MUST_KNOW and custom != _CUSTOM_PATH_ID:
                raise UnsupportedRocksDbError(edit.path, f"field {custom} of a table in MANIFEST")
    # The largest key is that of an entry, or the exclusive end of a range deletion.
    end = largest[:-INTERNAL_BYTES] + (b"" if largest.endswith(_RANGE_END) else b"\0")
    return LiveTable(number, level, smallest[:-INTERNAL_BYTES], end, largest_sequence)
