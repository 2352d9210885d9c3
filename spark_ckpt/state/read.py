"""Rows of a store as Arrow, key group by key group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import Entries, read_entries, split_ranges
from spark_ckpt.state.catalog import StateCatalog
from spark_ckpt.state.merge import Merged, merge
from spark_ckpt.state.scan import Scan
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.views import View
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True, eq=False)
class StateScan(Scan):
    """A lazy table of the state of a Spark query.

    Every method that reads rows can raise a `SegmentError` or `StateRowError` for a damaged file, or a `StorageError`.

    Args:
        catalog: the state of the checkpoint.
        view: the column family to read.
        condition: condition on rows, if any.
        limit: maximum number of rows, if any.
    """

    catalog: StateCatalog
    view: View
    condition: pc.Expression | None = None
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.view.schema

    def all_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, a range of key groups of a partition at a time."""
        for partition, merged in merged_rows(self.catalog, self.view):
            yield self.view.batch(*decode_merged(self.view, merged), partition)


def merged_rows(catalog: StateCatalog, view: View) -> Iterator[tuple[int, Merged]]:
    """The undecoded rows of a view, with their partition."""
    state = view.store.state
    for partition, chain in enumerate(view.store.chains):
        ranges = overlapping_ranges(partition, state.parallelism, catalog.batch.key_group_factors)
        for key_groups in split_ranges(chain, ranges):
            yield partition, merge(read_view(catalog.storage, view, chain, key_groups))


def read_view(storage: Storage, view: View, chain: Chain, key_groups: KeyGroupRange) -> Entries:
    """Rows of a view in a chain, for a range of key groups."""
    store = str(view.store.state.key)
    return read_entries(storage, store, chain, key_groups, view.segment_family, view.partition_key)


def decode_merged(view: View, merged: Merged) -> tuple[pa.StructArray, pa.StructArray]:
    """Keys and values of equal length; lists keep the order of their elements."""
    keys, values = decode_rows(view.family.key, merged.keys), decode_rows(view.family.value, merged.values)
    if merged.order is None or merged.counts is None:
        return keys, values
    owners = np.repeat(np.arange(len(merged.keys)), merged.counts)
    return keys.take(pa.array(owners)), values.take(pa.array(merged.order))


def values_by_key(view: View, merged: Merged) -> pa.Array:
    """A value for each key, as a list if the family has lists."""
    values = decode_rows(view.family.value, merged.values)
    if not view.lists:
        return values
    if merged.order is None or merged.counts is None:
        return pa.array([], pa.list_(values.type))
    offsets = np.concatenate(([0], np.cumsum(merged.counts))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(merged.order)))
