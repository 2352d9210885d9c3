"""Spark's partitioning hash, vectorised (`Murmur3Hash`, `Murmur3_x86_32`, seed 42).

Needed only after a rescale to a number of partitions that does not divide the number of key groups: several partitions
then read the same blocks, and the hash of a row decides between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.spark_files.types import Bytes, CalendarInterval, Decimal, Fixed, Null, SparkType, Struct
from spark_ckpt.state.errors import UnsupportedStateError
from spark_ckpt.state.rows import Rows
from spark_ckpt.state.unsafe_row import null_bits, spans

_SEED = 42

Hashes: TypeAlias = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """Part of a key that Spark partitions by (`StatePartitionKeyExtractorFactory`).

    Args:
        kind: type of the keys.
        columns: number of leading fields; None if unknown.
        path: fields that lead to the struct with these fields; empty for the key itself.
    """

    kind: Struct
    columns: int | None
    path: tuple[int, ...] = ()

    def hashes(self, keys: Rows) -> NDArray[np.int32]:
        """The hash of each key.

        Raises:
            UnsupportedStateError: the fields are unknown, or contain an array.
            StateRowError: a key is too short, or has a value out of bounds.
        """
        if self.columns is None:
            raise UnsupportedStateError(keys.buffer.store, "partitions share key groups of an internal index of Spark")
        hashes: Hashes = np.full(len(keys), _SEED, np.uint32)
        kind, rows = self.kind, keys
        for field in self.path:
            slots = rows.starts + (kind.null_bytes + 8 * field)
            rows = spans(slots, np.zeros(len(rows), np.bool_), rows)
            inner = kind.types[field]
            assert isinstance(inner, Struct)
            kind = inner
        return _fields(kind, rows, self.columns, hashes).view(np.int32)

    def passing(self, keys: Rows, filters: Iterable[PartitionFilter]) -> NDArray[np.bool_]:
        """Mask of the keys that pass all filters; raises as `hashes` does."""
        hashes = self.hashes(keys).astype(np.int64)
        passing = np.ones(len(keys), np.bool_)
        for each in filters:
            passing &= np.isin(hashes % each.parallelism, each.partitions)
        return passing


def grouping_hashes(kind: Struct, keys: Rows) -> NDArray[np.int32]:
    """The hash of whole grouping keys; 0 without columns, because such an operator runs as one task.

    Args:
        kind: type of the grouping keys.
        keys: the grouping keys.

    Raises:
        UnsupportedStateError, StateRowError: as in `PartitionKey.hashes`.
    """
    return PartitionKey(kind, len(kind.types)).hashes(keys) if kind.types else np.zeros(len(keys), np.int32)


def _fields(kind: Struct, rows: Rows, columns: int, hashes: Hashes) -> Hashes:
    """The hash of a field is the seed of the next; a null leaves it unchanged."""
    rows.check(rows.sizes < kind.fixed_bytes, f"a row of {{size}} bytes; expected at least {kind.fixed_bytes}")
    for index, field in enumerate(kind.types[:columns]):
        nulls = null_bits(rows, rows.starts, index)
        at = rows.starts + (kind.null_bytes + 8 * index)
        present = np.flatnonzero(~nulls)
        hashes = hashes.copy()
        hashes[present] = _field(field, at[present], rows.take(present), hashes[present])
    return hashes


def _field(kind: SparkType, at: NDArray[np.int64], within: Rows, hashes: Hashes) -> Hashes:
    buffer = within.buffer
    none = np.zeros(at.size, np.bool_)
    match kind:
        case Null():
            return hashes
        case Fixed():
            return _fixed(buffer.read(kind.stored, at), hashes)
        case Decimal() if kind.is_long:
            return _long(buffer.words(at), hashes)
        case Decimal() | Bytes():
            return _bytes(spans(at, none, within), hashes)
        case Struct():
            return _fields(kind, spans(at, none, within), len(kind.types), hashes)
        case CalendarInterval():
            starts = spans(at, none, within).starts
            hashes = _long(buffer.words(starts + 8), hashes)
            return _int(buffer.read("<i4", starts), _int(buffer.read("<i4", starts + 4), hashes))
    raise UnsupportedStateError(buffer.store, f"partitions share key groups, and the key has a {kind.arrow}")


def _fixed(values: NDArray[np.generic], hashes: Hashes) -> Hashes:
    if values.dtype.kind == "f":
        # As in `Float.floatToIntBits` and `Double.doubleToLongBits`: a single NaN, and here a single zero.
        values = np.where(values == 0, values.dtype.type(0), values)
        values = np.where(values != values, values.dtype.type(np.nan), values)
        values = values.view(f"<i{values.dtype.itemsize}")
    return _long(values, hashes) if values.dtype.itemsize == 8 else _int(values, hashes)


def _int(values: NDArray[np.generic], hashes: Hashes) -> Hashes:
    return _finish(_mix(hashes, values.astype(np.int32).view(np.uint32)), np.uint32(4))


def _long(values: NDArray[np.generic], hashes: Hashes) -> Hashes:
    unsigned = values.view(np.uint64)
    low, high = unsigned.astype(np.uint32), (unsigned >> np.uint64(32)).astype(np.uint32)
    return _finish(_mix(_mix(hashes, low), high), np.uint32(8))


def _bytes(values: Rows, hashes: Hashes) -> Hashes:
    """`hashUnsafeBytes`: words of 4 bytes, then each remaining byte on its own."""
    hashes = hashes.copy()
    words = values.sizes // 4
    for index in range(int(words.max(initial=0))):
        some = np.flatnonzero(words > index)
        hashes[some] = _mix(hashes[some], values.buffer.read("<u4", values.starts[some] + 4 * index))
    for index in range(3):
        some = np.flatnonzero(values.sizes % 4 > index)
        signed = values.buffer.read("<i1", values.starts[some] + 4 * words[some] + index).astype(np.int32)
        hashes[some] = _mix(hashes[some], signed.view(np.uint32))
    return _finish(hashes, values.sizes.astype(np.uint32))


def _mix(hashes: Hashes, words: NDArray[np.generic]) -> Hashes:
    mixed: Hashes = words.astype(np.uint32) * np.uint32(0xCC9E2D51)
    mixed = (mixed << np.uint32(15) | mixed >> np.uint32(17)) * np.uint32(0x1B873593)
    mixed ^= hashes
    mixed = (mixed << np.uint32(13) | mixed >> np.uint32(19)) * np.uint32(5)
    mixed += np.uint32(0xE6546B64)
    return mixed


def _finish(hashes: Hashes, lengths: Hashes | np.uint32) -> Hashes:
    mixed: Hashes = hashes ^ lengths
    mixed = (mixed ^ mixed >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ mixed >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    mixed ^= mixed >> np.uint32(16)
    return mixed
