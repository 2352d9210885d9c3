"""Differences in state between two checkpoints. Only key groups with differing blocks are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.sources import sources_of
from spark_ckpt.format.key_groups import overlapping_ranges, owned_ranges, partitions_of
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import split_ranges
from spark_ckpt.state.catalog import StateCatalog, open_state
from spark_ckpt.state.merge import Merged, codes_of, merge
from spark_ckpt.state.read import read_view, values_by_key
from spark_ckpt.state.source_changes import PositionChange, position_changes
from spark_ckpt.state.unsafe_row import binary_array, decode_rows
from spark_ckpt.state.views import View, choose_view

CHANGES = ("delete", "update", "insert")
"""Kinds of changes, named as in the change feeds of Spark and Delta."""


@dataclass(frozen=True, slots=True, eq=False)
class StateDiff:
    """Keys of a column family with differing values in two checkpoints, read on demand.

    Args:
        before: the state of the first checkpoint.
        after: the state of the second one.
        view_before: the column family in the first one.
        view_after: the column family in the second one.
    """

    before: StateCatalog
    after: StateCatalog
    view_before: View
    view_after: View

    @property
    def schema(self) -> pa.Schema:
        """`change`, the stored `key`, and the values `before` and `after`, as lists if the family has lists."""
        values = [view.value_type for view in self._views]
        key = self.view_after.family.key.arrow
        return pa.schema([("change", pa.string()), ("key", key), ("before", values[0]), ("after", values[1])])

    @property
    def _views(self) -> tuple[View, View]:
        return self.view_before, self.view_after

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The differences, a range of key groups at a time.

        Raises:
            SegmentError, StateRowError: a state file is damaged.
            StorageError: a state file cannot be read.
        """
        for old_chain, new_chain, key_groups in self._changed_ranges():
            old = read_view(self.before.storage, self.view_before, old_chain, key_groups)
            new = read_view(self.after.storage, self.view_after, new_chain, key_groups)
            yield self._compare(merge(old), merge(new))

    def to_arrow(self) -> pa.Table:
        """All differences."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def source_changes(self) -> Iterator[PositionChange]:
        """Positions of the query's sources that differ. Reads no file."""
        old, new = (sources_of(catalog.found.metadata, catalog.batch) for catalog in (self.before, self.after))
        yield from position_changes(old, new)

    def _changed_ranges(self) -> Iterator[tuple[Chain, Chain, KeyGroupRange]]:
        """Key groups with differing blocks, and the chains of their subtasks."""
        stores = [view.store for view in self._views]
        factors = [catalog.batch.key_group_factors for catalog in (self.before, self.after)]
        old, new = (store.state.parallelism for store in stores)
        for partition, chain in enumerate(stores[1].chains):
            if old == new:
                owners = [(partition, overlapping_ranges(partition, new, factors[1]))]
            else:
                owners = list(_owners_of(owned_ranges(partition, new, factors[1]), old, factors[0]))
            for other, ranges in owners:
                old_chain = stores[0].chains[other]
                yield from ((old_chain, chain, changed) for changed in _differing(old_chain, chain, ranges))

    def _compare(self, before: Merged, after: Merged) -> pa.RecordBatch:
        keys = pa.concat_arrays([binary_array(before.keys), binary_array(after.keys)])
        codes = codes_of(keys)
        old_codes, new_codes = codes[: len(before.keys)], codes[len(before.keys) :]
        where_new = np.full(codes.size, -1, np.int64)
        where_new[new_codes] = np.arange(new_codes.size)
        is_old = np.zeros(codes.size, np.bool_)
        is_old[old_codes] = True
        partner = where_new[old_codes]
        common = np.flatnonzero(partner >= 0)
        old_values, new_values = _comparable(before, after)
        differs = pc.not_equal(old_values.take(pa.array(common)), new_values.take(pa.array(partner[common])))
        updated = common[differs.to_numpy(zero_copy_only=False)]
        deleted, inserted = np.flatnonzero(partner < 0), np.flatnonzero(~is_old[new_codes])
        old = np.concatenate([deleted, updated])
        new = np.concatenate([partner[updated], inserted])
        old_rows, new_rows = (
            values_by_key(view, merged) for view, merged in zip(self._views, (before, after), strict=True)
        )
        counts = (deleted.size, updated.size, inserted.size)
        old_keys = decode_rows(self.view_before.family.key, before.keys).take(pa.array(old))
        new_keys = decode_rows(self.view_after.family.key, after.keys).take(pa.array(inserted))
        columns = [
            pa.array(np.repeat(np.array(CHANGES), counts), pa.string()),
            pa.concat_arrays([old_keys.cast(new_keys.type), new_keys]),
            pa.concat_arrays([old_rows.take(pa.array(old)), pa.nulls(inserted.size, old_rows.type)]),
            pa.concat_arrays([pa.nulls(deleted.size, new_rows.type), new_rows.take(pa.array(new))]),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def diff_state(
    location: str,
    before: int,
    after: int,
    *,
    operator: int | str | None = None,
    store: str | None = None,
    variable: str | None = None,
) -> StateDiff:
    """Differences in the state of a query between two of its checkpoints, without Spark.

    Args:
        location: checkpoint location of the query, as a path or URL.
        before: id of the first checkpoint.
        after: id of the second one.
        operator: as in `read_state`.
        store: as in `read_state`.
        variable: as in `read_state`.

    Raises:
        SparkCkptError: as in `read_state`.
    """
    old, new = open_state(location, before), open_state(location, after)
    return StateDiff(old, new, choose_view(old, operator, store, variable), choose_view(new, operator, store, variable))


def _owners_of(
    ranges: list[KeyGroupRange], parallelism: int, factors: tuple[int, ...]
) -> Iterator[tuple[int, list[KeyGroupRange]]]:
    """Partitions at another parallelism that own key groups of these ranges, with the ranges of each."""
    key_groups = np.concatenate([np.arange(each.start, each.end + 1) for each in ranges])
    owners = partitions_of(key_groups, parallelism, factors)
    for owner in np.unique(owners).tolist():
        mine = key_groups[owners == owner]
        runs = np.split(mine, np.flatnonzero(np.diff(mine) != 1) + 1)
        yield owner, [KeyGroupRange(int(run[0]), int(run[-1])) for run in runs]


def _differing(old: Chain, new: Chain, ranges: list[KeyGroupRange]) -> Iterator[KeyGroupRange]:
    """The key groups of some ranges with differing blocks."""
    blocks = [_blocks(chain) for chain in (old, new)]
    for key_groups in ranges:
        differing = np.array([group for group in key_groups if blocks[0].get(group) != blocks[1].get(group)], np.int64)
        for run in np.split(differing, np.flatnonzero(np.diff(differing) != 1) + 1):
            if run.size:
                changed = [KeyGroupRange(int(run[0]), int(run[-1]))]
                yield from split_ranges(new if new.entries else old, changed)


def _blocks(chain: Chain) -> dict[int, list[tuple[str | bytes, int]]]:
    """Locations of the blocks of each key group. State files are never rewritten; inline state is compared by value."""
    blocks: dict[int, list[tuple[str | bytes, int]]] = {}
    for entry in chain.entries:
        for key_group, offset in zip(entry.key_groups.tolist(), entry.offsets.tolist(), strict=True):
            blocks.setdefault(key_group, []).append((entry.path or bytes(entry.data), offset))
    return blocks


def _comparable(before: Merged, after: Merged) -> tuple[pa.Array, pa.Array]:
    """Bytes per key that are equal if and only if the values are; for lists the codes of their rows."""
    sides = (before, after)
    rows = [binary_array(merged.values) for merged in sides]
    if before.order is None and after.order is None:
        return rows[0], rows[1]
    codes = codes_of(pa.concat_arrays(rows))
    parts = np.split(codes, [len(rows[0])])
    old, new = (_joined(merged, part) for merged, part in zip(sides, parts, strict=True))
    return old, new


def _joined(merged: Merged, codes: NDArray[np.int64]) -> pa.Array:
    if merged.order is None or merged.counts is None:
        return pa.array([], pa.large_binary())
    offsets = 8 * np.concatenate(([0], np.cumsum(merged.counts)))
    ordered = np.ascontiguousarray(codes[merged.order])
    return pa.Array.from_buffers(
        pa.large_binary(), len(merged.keys), [None, pa.py_buffer(offsets), pa.py_buffer(ordered)]
    )
