"""Merge of a chain's entries into live rows: the newest value of each key, and for lists all later appends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.format.segments import list_rows
from spark_ckpt.state.blocks import Entries
from spark_ckpt.state.rows import Rows
from spark_ckpt.state.unsafe_row import binary_array


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The rows of a column family in some key groups.

    Args:
        keys: each key once.
        values: the value of each key; for lists, the rows of all lists.
        order: for lists: indices of `values` by key, then in the order of the list.
        counts: for lists: number of rows per key.
    """

    keys: Rows
    values: Rows
    order: NDArray[np.int64] | None = None
    counts: NDArray[np.int64] | None = None


def merge(entries: Entries) -> Merged:
    """The live rows.

    Raises:
        StateRowError: a value should be a list but is not.
    """
    if entries.lists:
        return _merge_lists(entries)
    indices = np.flatnonzero(~entries.removed)
    if not entries.distinct:
        codes = codes_of(binary_array(entries.keys))
        newest = np.empty(codes.size, np.int64)
        newest[codes] = np.arange(codes.size)
        indices = indices[newest[codes[indices]] == indices]
    return Merged(entries.keys.take(indices), entries.values.take(indices))


def codes_of(values: pa.LargeBinaryArray) -> NDArray[np.int64]:
    """A number for each value, equal for equal values, ascending by first occurrence."""
    codes: NDArray[np.int64] = values.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _merge_lists(entries: Entries) -> Merged:
    codes = codes_of(binary_array(entries.keys))
    every = np.arange(codes.size)
    whole = np.zeros(codes.size, np.int64)
    whole[codes[~entries.appends]] = every[~entries.appends]
    indices = np.flatnonzero(~entries.removed & (every >= whole[codes]))
    rows, counts = _split_lists(entries, indices)
    owners = np.repeat(codes[indices], counts)
    present, per_key = np.unique(owners, return_counts=True)
    _, first = np.unique(codes, return_index=True)
    return Merged(entries.keys.take(first[present]), rows, np.argsort(owners, kind="stable"), per_key)


def _split_lists(entries: Entries, indices: NDArray[np.int64]) -> tuple[Rows, NDArray[np.int64]]:
    """The rows of the lists of some entries, in storage order, and their number per list."""
    values, data = entries.values, entries.values.buffer.data.tobytes()
    spans: list[tuple[int, int]] = []
    counts = np.zeros(indices.size, np.int64)
    for index, entry in enumerate(indices.tolist()):
        start, size = int(values.starts[entry]), int(values.sizes[entry])
        try:
            rows = list_rows(data, start, start + size, appended=bool(entries.appends[entry]))
        except ValueError as e:
            raise values.buffer.fail(start, str(e)) from e
        spans += rows
        counts[index] = len(rows)
    edges = np.array(spans, np.int64).reshape(-1, 2)
    return Rows(values.buffer, edges[:, 0], edges[:, 1] - edges[:, 0]), counts
