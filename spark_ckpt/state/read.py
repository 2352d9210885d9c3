"""`read_state`: the rows of a store as Arrow, key group by key group."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import Entries, read_entries, split_ranges
from spark_ckpt.state.catalog import StateCatalog, open_state
from spark_ckpt.state.export import write_delta, write_parquet
from spark_ckpt.state.filter import parse_filter
from spark_ckpt.state.merge import Merged, merge
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.views import Side, View, choose_view

if TYPE_CHECKING:
    import pandas as pd


def read_state(
    location: str | os.PathLike[str],
    *,
    operator: int | None = None,
    store: str | None = None,
    variable: str | None = None,
    side: Side | None = None,
    id: int | None = None,  # noqa: A002  (the word of the command)
    where: str | None = None,
    limit: int | None = None,
) -> StateScan:
    """The state of a query as a lazy table, without Spark.

    The columns are those of Spark's `statestore` data source: `key`, `value`, `partition_id`. A list variable has
    `list_element` for each element; a map variable `user_map_key` and `user_map_value` for each entry; timers have
    `expiration_timestamp_ms`.

    Args:
        location: checkpoint location of the query, as a path or URL.
        operator: Spark's operator number; required if several operators are stateful.
        store: name of the store; required if the operator has several.
        variable: state variable of a `transformWithState`, or a column family.
        side: side of a join, `left` or `right`, as in Spark's `joinSide`.
        id: the checkpoint; by default the newest.
        where: condition on rows, such as `key.user = 'a' and value.count > 3` (see `parse_filter`).
        limit: maximum number of rows.

    Raises:
        StateNotFoundError: no such operator, store, state variable or side, or one must be selected.
        FilterError: the condition is invalid.
        StateSchemaError: one of Spark's schema files is missing or damaged.
        UnsupportedStateError: only Spark can read the state.
        SparkCkptError: no such checkpoint, or it cannot be read.
    """
    catalog = open_state(os.fspath(location), id)
    view = choose_view(catalog, operator, store, variable, side)
    return StateScan(catalog, view, None if where is None else parse_filter(where, view.schema), limit)


@dataclass(frozen=True, slots=True, eq=False)
class StateScan:
    """A lazy table of state.

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

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a range of key groups of a partition at a time."""
        left = self.limit
        for partition, merged in merged_rows(self.catalog, self.view):
            batch = self.view.batch(*decode_merged(self.view, merged), partition)
            for chosen in [batch] if self.condition is None else _filtered(batch, self.condition):
                part = chosen.slice(0, left)
                if len(part):
                    yield part
                if left is not None:
                    left -= len(part)
            if left == 0:
                return

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, read on demand."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """All rows; structs are dictionaries. Needs pandas."""
        return self.to_arrow().to_pandas()

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows to a new Parquet file.

        Args:
            path: path or URL of the new file.

        Returns:
            Number of rows.

        Raises:
            TargetExistsError: the file exists already.
            StorageError: it cannot be written.
        """
        return write_parquet(self.schema, self.batches(), os.fspath(path))

    def to_delta(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows to a new Delta table, with types that Delta lacks converted (see `write_delta`).

        Args:
            path: path or URL of a directory without a Delta table.

        Returns:
            Number of rows.

        Raises:
            TargetExistsError: a Delta table exists already.
            StorageError: it cannot be written.
        """
        return write_delta(self.schema, self.batches(), os.fspath(path))


def _filtered(batch: pa.RecordBatch, condition: pc.Expression) -> list[pa.RecordBatch]:
    # All supported releases of Arrow filter tables by expressions; only the newest filters batches.
    batches: list[pa.RecordBatch] = pa.Table.from_batches([batch]).filter(condition).to_batches()
    return batches


def merged_rows(catalog: StateCatalog, view: View) -> Iterator[tuple[int, Merged]]:
    """The undecoded rows of a view, with their partition."""
    state = view.store.state
    for partition, chain in enumerate(view.store.chains):
        ranges = overlapping_ranges(partition, state.parallelism, catalog.batch.key_group_factors)
        for key_groups in split_ranges(chain, ranges):
            yield partition, merge(read_view(catalog, view, chain, key_groups))


def read_view(catalog: StateCatalog, view: View, chain: Chain, key_groups: KeyGroupRange) -> Entries:
    """Rows of a view in a chain, for a range of key groups."""
    store = str(view.store.state.key)
    return read_entries(catalog.storage, store, chain, key_groups, view.segment_family, view.partition_key)


def decode_merged(view: View, merged: Merged) -> tuple[pa.StructArray, pa.StructArray]:
    """Keys and values of equal length; lists keep the order of their elements."""
    keys, values = decode_rows(view.family.key, merged.keys), decode_rows(view.family.value, merged.values)
    if merged.order is None or merged.counts is None:
        return keys, values
    owners = np.repeat(np.arange(len(merged.keys)), merged.counts)
    return keys.take(pa.array(owners)), values.take(pa.array(merged.order))
