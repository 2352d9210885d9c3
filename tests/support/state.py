"""State as returned by `read_state` and by Spark's own state reader."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from spark_ckpt import read_state
from spark_ckpt.format.key_groups import key_group_of
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.catalog import open_state
from spark_ckpt.state.read import read_view
from spark_ckpt.state.views import choose_view
from tests.support.checkpoints import committed_batches, log_records
from tests.support.sinks import assert_same_rows


def assert_read_as_spark_does(
    spark: SparkSession, location: Path, options: Mapping[str, object] | None = None, **arguments: Any
) -> pa.Table:
    """Asserts that both readers return the same columns and rows.

    Args:
        spark: the session.
        location: the checkpoint location; the last committed batch is read unless `options` names another one.
        options: options of Spark's `statestore` source.
        arguments: arguments of `read_state`.
    """
    frame = spark.read.format("statestore").options(**{k: str(v) for k, v in (options or {}).items()})
    state = frame.load(str(location))
    # A stopped query can leave a checkpoint of an uncommitted batch.
    batch = int(str((options or {}).get("batchId", committed_batches(location)[-1])))
    ids = [record["id"] for record in log_records(location) if record.get("batch_id") == batch]
    table = read_state(str(location), id=ids[-1], **arguments).to_arrow()
    table.validate(full=True)
    assert_key_groups(str(location), ids[-1])
    assert_rows_as_spark_has(table, state)
    return table


def assert_rows_as_spark_has(table: pa.Table, frame: DataFrame) -> None:
    """Asserts that both have the same columns and rows, in any order."""
    assert table.schema.names == frame.columns
    expected = [tuple(_of_spark(value) for value in row) for row in frame.collect()]
    columns = [[_of_arrow(value, column.type) for value in column.to_pylist()] for column in table.columns]
    assert_same_rows(list(zip(*columns, strict=True)), expected)


def assert_key_groups(location: str, checkpoint_id: int) -> None:
    """Asserts that each key's hash yields the key group chosen by the executors."""
    catalog = open_state(location, checkpoint_id)
    for store in catalog.stores:
        for family in store.families if not store.variables else ():
            view = choose_view(catalog, store.state.operator_id, store.state.store, family.name)
            # Without a partition key, as in a limit, rows are in a key group specific to their partition.
            for chain in store.chains if view.partition_key.columns else ():
                for group in {int(group) for entry in chain.entries for group in entry.key_groups}:
                    entries = read_view(catalog.storage, view, chain, KeyGroupRange(group, group))
                    hashes = view.partition_key.hashes(entries.keys)
                    assert set(key_group_of(hashes, catalog.batch.key_group_factors).tolist()) <= {group}


def _of_spark(value: Any) -> Any:
    """A comparable, hashable form of the value."""
    if isinstance(value, Row):
        return tuple(_of_spark(part) for part in value)
    if isinstance(value, list):
        return tuple(_of_spark(part) for part in value)
    if isinstance(value, dict):
        return frozenset((_of_spark(key), _of_spark(item)) for key, item in value.items())
    return bytes(value) if isinstance(value, bytearray) else value


def _of_arrow(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return tuple(_of_arrow(part, field.type) for part, field in zip(value.values(), kind, strict=True))
    if pa.types.is_list(kind):
        return tuple(_of_arrow(part, kind.value_type) for part in value)
    if pa.types.is_map(kind):
        return frozenset((_of_arrow(key, kind.key_type), _of_arrow(item, kind.item_type)) for key, item in value)
    # PySpark returns naive times in the session's time zone, which is UTC here.
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
