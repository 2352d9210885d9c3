"""States of real Flink as the writer takes them: descriptors from headers, rows from the reader of Flink's state."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from spark_ckpt import metadata as m
from spark_ckpt.flink.export.model import (
    KEY,
    MAP_KEY,
    NAMESPACE,
    TIMESTAMP,
    VALUE,
    FlinkOperator,
    FlinkState,
    StateKind,
)
from spark_ckpt.flink.streams import KeyedState, Serializer, StateFiles, StateMetaInfoSnapshot
from spark_ckpt.flink.streams.headers import BackendStateType
from spark_ckpt.flink.streams.types.composites import TimerSerializer
from spark_ckpt.flink.tables.read import read_flink_state
from spark_ckpt.flink.types.arrow import list_type
from spark_ckpt.flink.types.lookup import arrow_type

NAMES = {
    "key": KEY,
    "namespace": NAMESPACE,
    "value": VALUE,
    "list_element": VALUE,
    "user_map_key": MAP_KEY,
    "user_map_value": VALUE,
    "expiration_timestamp_ms": TIMESTAMP,
}
"""Columns of the writer by those of the reader."""


def keyed_streams(metadata: m.CheckpointMetadata, files: StateFiles) -> Iterator[tuple[m.OperatorState, KeyedState]]:
    """Streams of canonical keyed state, open while they are looked at."""
    for operator in metadata.operator_states:
        for subtask in operator.subtask_states.values():
            handle = subtask.managed_keyed_state
            if isinstance(handle, m.KeyGroupsSavepointStateHandle):
                with files.open(handle.delegate_state_handle) as stream:
                    yield operator, KeyedState(handle, stream, operator.max_parallelism)


def operators_of(metadata: m.CheckpointMetadata, files: StateFiles) -> list[FlinkOperator]:
    """Operators with canonical keyed state."""
    found: dict[bytes, FlinkOperator] = {}
    for operator, state in keyed_streams(metadata, files):
        key = state.header.key_serializer
        assert key is not None
        states = [state_of(each) for each in state.header.states]
        found[operator.operator_id] = FlinkOperator(None, operator.operator_id, key, states, operator.max_parallelism)
    return list(found.values())


def state_of(meta: StateMetaInfoSnapshot) -> FlinkState:
    """State that a header describes."""
    value = meta.value_serializer
    if meta.kind is BackendStateType.PRIORITY_QUEUE:
        assert isinstance(value, TimerSerializer)
        kind = next(kind for kind in StateKind if kind.is_timer and meta.name.startswith(kind.value))
        return FlinkState.timers(kind, meta.name.removeprefix(kind.value), value.parts[1])
    kind = StateKind(meta.keyed_state_type)
    map_key: Serializer | None = None
    if kind is StateKind.LIST:
        (value,) = value.nested
    elif kind is StateKind.MAP:
        map_key, value = value.nested
    return FlinkState(meta.name, kind, value, map_key, meta.namespace_serializer)


def rows_of(
    metadata: m.CheckpointMetadata, files: StateFiles, operator: FlinkOperator, state: FlinkState
) -> pa.RecordBatch:
    """All rows of a state, as the writer takes them."""
    scan = read_flink_state(metadata, files, state=state.name, operator=operator.operator_id.hex())
    table = scan.to_arrow()
    table = table.rename_columns([NAMES.get(name, name) for name in table.column_names]).select(list(state.columns))
    if state.kind is StateKind.LIST:
        table = _grouped(table, state)
    return table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], table.schema)


def _grouped(table: pa.Table, state: FlinkState) -> pa.Table:
    """A row for each list instead of each element."""
    lists: dict[str, dict[str, object]] = {}
    for row in table.to_pylist():
        value = row.pop(VALUE)
        found = lists.setdefault(repr(row), {**row, VALUE: []})[VALUE]
        assert isinstance(found, list)
        found.append(value)
    fields = [field for field in table.schema if field.name != VALUE]
    schema = pa.schema([*fields, (VALUE, list_type(arrow_type(state.value)).type)])
    return pa.Table.from_pylist(list(lists.values()), schema)
