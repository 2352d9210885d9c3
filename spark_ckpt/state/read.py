"""`read_state`: the rows of a store as Arrow, key group by key group."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import Entries, read_entries, split_ranges
from spark_ckpt.state.catalog import StateCatalog, open_state
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.state.filter import parse_filter
from spark_ckpt.state.flink import FlinkScan
from spark_ckpt.state.flink_catalog import FlinkCatalog, open_flink_state
from spark_ckpt.state.merge import Merged, merge
from spark_ckpt.state.scan import Scan
from spark_ckpt.state.unsafe_row import decode_rows
from spark_ckpt.state.views import Side, View, choose_view


def read_state(
    location: str | os.PathLike[str],
    *,
    operator: int | str | None = None,
    store: str | None = None,
    variable: str | None = None,
    side: Side | None = None,
    id: int | None = None,  # noqa: A002  (the word of the command)
    where: str | None = None,
    limit: int | None = None,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
) -> Scan:
    """The state of a query, or the keyed state of a Flink job, as a lazy table, without Spark and Flink.

    The columns are those of Spark's `statestore` data source: `key`, `value`, `partition_id`. A list variable has
    `list_element` for each element; a map variable `user_map_key` and `user_map_value` for each entry; timers have
    `expiration_timestamp_ms`. State of Flink also has `key_group`, and `namespace` if it has namespaces, such as
    windows; values of unknown classes are structs of `class` and `bytes`.

    Args:
        location: checkpoint location of the query, or a checkpoint, savepoint or job directory of Flink, as a path or
            URL.
        operator: Spark's operator number; required if several operators are stateful. In Flink, the operator's id in
            hexadecimal, its uid or its name; required if several operators have a state of the same name.
        store: name of the store; required if the operator has several. Flink has none.
        variable: state variable of a `transformWithState`, or a column family; in Flink, name of the state.
        side: side of a join, `left` or `right`, as in Spark's `joinSide`. Flink has none.
        id: the checkpoint; by default the newest.
        where: condition on rows, such as `key.user = 'a' and value.count > 3` (see `parse_filter`).
        limit: maximum number of rows.
        moved: pairs of old and new directories of files of a Flink checkpoint that was moved.
        allow_outside: True to open files outside the Flink checkpoint's own storage.

    Raises:
        StateNotFoundError: no such operator, store, state variable or side, or one must be selected.
        FilterError: the condition is invalid.
        StateSchemaError: one of Spark's schema files is missing or damaged.
        UnsupportedStateError: only Spark can read the state.
        UnsupportedFlinkStateError: the state of Flink cannot be read as rows.
        SparkCkptError: no such checkpoint, or it cannot be read.
    """
    place = os.fspath(location)
    flink = find_flink_state(place, id, moved=moved, allow_outside=allow_outside)
    if flink is not None:
        if store is not None or side is not None:
            reason = "the state of a Flink job has neither stores nor sides: choose an operator and a state variable"
            raise StateNotFoundError(place, reason, [state.name for state in flink.states()])
        state = flink.choose(operator, variable)
        return FlinkScan(flink, state, None if where is None else parse_filter(where, state.columns.schema), limit)
    catalog = open_state(place, id)
    view = choose_view(catalog, operator, store, variable, side)
    return StateScan(catalog, view, None if where is None else parse_filter(where, view.schema), limit)


def find_flink_state(
    location: str,
    checkpoint_id: int | None = None,
    *,
    moved: Sequence[tuple[str, str]] = (),
    allow_outside: bool = False,
) -> FlinkCatalog | None:
    """State of the selected checkpoint or savepoint of a Flink job; None if the location belongs to a query of Spark.

    Args:
        location: the location, as a path or URL.
        checkpoint_id: the checkpoint; by default the newest.
        moved, allow_outside: as in `read_state`.

    Raises:
        SparkCkptError: no such checkpoint, or its metadata cannot be read.
    """
    found = CheckpointLocation.open(location).find_of_flink(checkpoint_id)
    return None if found is None else open_flink_state(location, found, moved=moved, allow_outside=allow_outside)


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
