"""Rows of a column family of Spark, and what is done to them before they go to Flink."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.state.catalog import StateCatalog
from spark_ckpt.state.read import merged_rows
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.views import View

_ROW = "row"


@dataclass(frozen=True, slots=True, eq=False)
class SourceRows:
    """Rows of some key groups of a partition. All rows of a key are together.

    Args:
        keys: the keys.
        values: a value for each key; of lists, the elements of all of them, in the order of the keys.
        counts: for lists, the number of elements of each key.
    """

    keys: pa.StructArray
    values: pa.StructArray
    counts: NDArray[np.int64] | None = None

    def where(self, mask: NDArray[np.bool_]) -> SourceRows:
        """The rows, or elements of lists, that `mask` marks. A list may become empty."""
        if mask.all():
            return self
        which = pa.array(np.flatnonzero(mask))
        if self.counts is None:
            return SourceRows(self.keys.take(which), self.values.take(which))
        counts = np.bincount(self._owners(self.counts)[mask], minlength=len(self.keys)).astype(np.int64)
        return SourceRows(self.keys, self.values.take(which), counts)

    def key_of(self, row: int) -> object:
        """The key of a row, or of an element of a list, as Python values."""
        at = row if self.counts is None else int(self._owners(self.counts)[row])
        return self.keys[at].as_py()

    @staticmethod
    def _owners(counts: NDArray[np.int64]) -> NDArray[np.int64]:
        owners: NDArray[np.int64] = np.repeat(np.arange(counts.size), counts)
        return owners

    def by_key(self, order: pa.Array, keys: pa.StructArray) -> SourceRows:
        """The rows as lists of their keys.

        Args:
            order: int64 for each of `keys`; the elements of a list ascend by it, then keep their order.
            keys: the keys without the column that tells the rows of a key apart.
        """
        owner = np.arange(len(keys)) if self.counts is None else self._owners(self.counts)
        firsts, of_key = _codes(keys)
        of_row = of_key[owner]
        rows = np.lexsort((order.to_numpy()[owner], of_row))
        counts = np.bincount(of_row, minlength=firsts.size).astype(np.int64)
        return SourceRows(keys.take(pa.array(firsts)), self.values.take(pa.array(rows)), counts)


def source_rows(catalog: StateCatalog, view: View) -> Iterator[SourceRows]:
    """Rows of a view, a range of key groups of a partition at a time.

    Raises:
        SegmentError, StateRowError, StorageError: a file is damaged, or cannot be read.
    """
    for _, merged in merged_rows(catalog, view):
        keys, values = decode_rows(view.family.key, merged.keys), decode_rows(view.family.value, merged.values)
        if merged.order is None or merged.counts is None:
            yield SourceRows(keys, values)
        else:
            yield SourceRows(keys, values.take(pa.array(merged.order)), merged.counts)


def _codes(keys: pa.StructArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Index of the first row of each distinct key, and for each row the number of its key."""
    columns = {str(number): column for number, column in enumerate(_leaves(keys))}
    if not columns:
        return np.zeros(min(1, len(keys)), np.int64), np.zeros(len(keys), np.int64)
    table = pa.table({**columns, _ROW: np.arange(len(keys))})
    grouped = table.group_by(list(columns), use_threads=False).aggregate([(_ROW, "list")])
    lists = grouped.column(f"{_ROW}_list").combine_chunks()
    if isinstance(lists, pa.ChunkedArray):  # without rows
        lists = pa.array([], pa.list_(pa.int64()))
    rows, sizes = lists.flatten().to_numpy(), lists.value_lengths().to_numpy()
    codes = np.empty(len(keys), np.int64)
    codes[rows] = np.repeat(np.arange(sizes.size), sizes)
    firsts = rows[np.cumsum(sizes) - sizes] if sizes.size else np.empty(0, np.int64)
    return firsts, codes


def _leaves(array: pa.Array) -> list[pa.Array]:
    if not pa.types.is_struct(array.type):
        return [array]
    return [leaf for column in array.flatten() for leaf in _leaves(column)]
