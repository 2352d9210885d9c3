"""Rows of a column family: its tables merged, with deletions, range deletions and merges applied (`DBIter`).

Flink appends to a list with RocksDB's merge operator `StringAppendTESTOperator`: the value is all operands, oldest
first, with a comma between them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from spark_ckpt.flink.rocksdb.errors import UnsupportedRocksDbError
from spark_ckpt.flink.rocksdb.table import Entry, RangeDeletion

DELETION, VALUE, MERGE, SINGLE_DELETION = 0, 1, 2, 7
"""Value types (`ValueType` in `dbformat.h`)."""

DELIMITER = b","
"""Byte between the operands of a merge (`ListDelimitedSerializer`)."""


class RangeDeletions:
    """Range deletions of a column family, asked for keys in ascending order."""

    def __init__(self, deletions: Iterable[RangeDeletion]) -> None:
        self._waiting = sorted(deletions, reverse=True)
        self._active: list[RangeDeletion] = []

    def newest(self, key: bytes) -> int:
        """Sequence number of the newest deletion that covers a key; -1 if none does."""
        while self._waiting and self._waiting[-1].begin <= key:
            self._active.append(self._waiting.pop())
        if not self._active:
            return -1
        self._active = [deletion for deletion in self._active if key < deletion.end]
        return max((deletion.sequence for deletion in self._active), default=-1)


def merged(
    tables: Sequence[Iterator[Entry]], deletions: Iterable[RangeDeletion], path: str
) -> Iterator[tuple[bytes, bytes]]:
    """Live keys and values, in order of the keys.

    Args:
        tables: entries of each table, or of tables that follow each other: by key, and from newer to older.
        deletions: range deletions of all tables.
        path: name for errors.

    Raises:
        UnsupportedRocksDbError: an entry of another type, such as a blob.
    """
    ranges = RangeDeletions(deletions)
    key: bytes | None = None
    operands: list[bytes] = []  # newest first
    covered, is_done = -1, False
    for entry in heapq.merge(*tables, key=_order):
        if entry.key != key:
            if key is not None and operands:
                yield key, _joined(operands)
            key, operands, is_done = entry.key, [], False
            covered = ranges.newest(entry.key)
        if is_done:
            continue
        if entry.kind in (DELETION, SINGLE_DELETION) or entry.sequence < covered:
            is_done = True
        elif entry.kind == VALUE:
            operands.append(entry.value)
            is_done = True
        elif entry.kind == MERGE:
            operands.append(entry.value)
        else:
            raise UnsupportedRocksDbError(path, f"value type {entry.kind}")
    if key is not None and operands:
        yield key, _joined(operands)


def _order(entry: Entry) -> tuple[bytes, int]:
    return entry.key, -entry.sequence


def _joined(operands: list[bytes]) -> bytes:
    return operands[0] if len(operands) == 1 else DELIMITER.join(reversed(operands))
