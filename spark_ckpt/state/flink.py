"""Keyed state of Flink's checkpoints and savepoints as Arrow, key group by key group, without Flink.

checkpoint, files = metadata.load("savepoint-4f1e2a"), StateFiles("savepoint-4f1e2a/_metadata")
for state in list_flink_states(checkpoint, files):
    print(state.operator_id.hex(), state.name, state.kind, state.columns)
for batch in read_flink_state(checkpoint, files, state="counts"):
    print(batch.to_pandas())
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from spark_ckpt import metadata as m
from spark_ckpt.metadata.streams import (
    BackendStateType,
    Entry,
    KeyedState,
    Part,
    Serializer,
    StateFiles,
    StateMetaInfoSnapshot,
    Timer,
)
from spark_ckpt.metadata.streams.headers import KeyedHeader
from spark_ckpt.metadata.streams.types import times
from spark_ckpt.metadata.streams.types.composites import MapSerializer, TimerSerializer
from spark_ckpt.state.errors import StateNotFoundError, UnsupportedFlinkStateError
from spark_ckpt.state.flink_rocksdb import RocksDbState
from spark_ckpt.state.flink_types import ArrowType, arrow_type

_TIMESTAMP = times.DATE
"""Serializer whose values are milliseconds since 1970, as the timestamps of timers."""

BATCH_ROWS = 8192
"""Maximum rows of a batch."""


@dataclass(frozen=True, slots=True)
class FlinkState:
    """Keyed state of an operator.

    Args:
        operator_id: id of the operator.
        name: name of the state.
        kind: `VALUE`, `LIST`, `REDUCING`, `AGGREGATING`, `MAP`, or `PRIORITY_QUEUE` for timers.
        columns: names of its columns, with the names of their types in Flink.
    """

    operator_id: bytes
    name: str
    kind: str
    columns: tuple[tuple[str, str], ...]


def list_flink_states(checkpoint: m.CheckpointMetadata, files: StateFiles) -> tuple[FlinkState, ...]:
    """Keyed states of a checkpoint or savepoint.

    Args:
        checkpoint: metadata of the checkpoint.
        files: opener of its state files.

    Raises:
        UnsupportedFlinkStateError: the state is in a changelog, or a serializer is unknown.
        StateStreamFormatError, RocksDbFormatError, StorageError: a file is damaged, or cannot be read.
    """
    found: dict[tuple[bytes, str], FlinkState] = {}
    for operator, state in _keyed_states(checkpoint, files):
        for meta in state.header.states:
            columns = tuple((name, str(serializer)) for name, serializer in _columns(state, meta))
            known = FlinkState(operator.operator_id, meta.name, _kind(meta), columns)
            found.setdefault((operator.operator_id, meta.name), known)
    return tuple(found.values())


def read_flink_state(
    checkpoint: m.CheckpointMetadata, files: StateFiles, *, state: str, operator_id: bytes | None = None
) -> Iterator[pa.RecordBatch]:
    """Rows of a keyed state, of all subtasks, in batches of at most `BATCH_ROWS`.

    The columns are `key_group`, `key`, `namespace` and `value`; for a map, `map_key` and `value` of each entry; for
    timers, `timestamp`. Expired rows of a state with a time to live are included.

    Args:
        checkpoint: metadata of the checkpoint.
        files: opener of its state files.
        state: name of the state.
        operator_id: id of the operator; required if several have a state of this name.

    Raises:
        StateNotFoundError: no such state, or the operator must be selected.
        UnsupportedFlinkStateError: as in `list_flink_states`, or a value that Arrow cannot hold.
        StateStreamFormatError, RocksDbFormatError, StorageError: a file is damaged, or cannot be read.
    """
    states = list_flink_states(checkpoint, files)
    matching = [known for known in states if known.name == state and operator_id in (None, known.operator_id)]
    if len(matching) != 1:
        reason = f"no state {state!r}" if not matching else f"several operators have a state {state!r}"
        available = [f"{known.name} of {known.operator_id.hex()}" for known in states]
        raise StateNotFoundError(f"checkpoint {checkpoint.checkpoint_id}", reason, available)
    return _batches(checkpoint, files, matching[0])


def _batches(checkpoint: m.CheckpointMetadata, files: StateFiles, wanted: FlinkState) -> Iterator[pa.RecordBatch]:
    for operator, state in _keyed_states(checkpoint, files):
        names = [meta.name for meta in state.header.states]
        if operator.operator_id != wanted.operator_id or wanted.name not in names:
            continue
        state_id = names.index(wanted.name)
        meta = state.header.states[state_id]
        columns = [("key_group", ArrowType(pa.int32()))]
        columns += [(name, arrow_type(serializer)) for name, serializer in _columns(state, meta)]
        rows: list[tuple[Any, ...]] = []
        for key_group, entry in state.entries(state_id):
            rows += [(key_group, *row) for row in _rows(entry, meta)]
            while len(rows) >= BATCH_ROWS:
                yield _batch(wanted, columns, rows[:BATCH_ROWS])
                del rows[:BATCH_ROWS]
        if rows:
            yield _batch(wanted, columns, rows)


def _batch(
    state: FlinkState, columns: Sequence[tuple[str, ArrowType]], rows: Sequence[tuple[Any, ...]]
) -> pa.RecordBatch:
    arrays = [
        _array(state, name, column, [row[number] for row in rows]) for number, (name, column) in enumerate(columns)
    ]
    return pa.record_batch(arrays, names=[name for name, _ in columns])


def _array(state: FlinkState, name: str, column: ArrowType, values: list[Any]) -> pa.Array:
    if column.convert is not None:
        values = [column.of(value) for value in values]
    try:
        return pa.array(values, column.type)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UnsupportedFlinkStateError(state.name, f"Arrow cannot hold a {name}: {error}") from error


def _kind(meta: StateMetaInfoSnapshot) -> str:
    return meta.keyed_state_type or meta.kind.name


def _columns(state: _KeyedSource, meta: StateMetaInfoSnapshot) -> list[tuple[str, Serializer]]:
    key = state.header.key_serializer
    assert key is not None
    value = meta.value_serializer
    if meta.kind is BackendStateType.PRIORITY_QUEUE:
        if not isinstance(value, TimerSerializer):
            return [("element", value)]
        return [("timestamp", _TIMESTAMP), ("key", value.parts[0]), ("namespace", value.parts[1])]
    columns = [("key", key), ("namespace", meta.namespace_serializer)]
    if meta.keyed_state_type == "MAP" and isinstance(value, MapSerializer):
        return [*columns, ("map_key", value.parts[0]), ("value", value.parts[1])]
    return [*columns, ("value", value)]


def _rows(entry: Entry, meta: StateMetaInfoSnapshot) -> list[tuple[Any, ...]]:
    parts = entry.parts
    if (element := parts.get(Part.ELEMENT)) is not None:
        return [tuple(element.value) if isinstance(element.value, Timer) else (element.value,)]
    head = (parts[Part.KEY].value, parts[Part.NAMESPACE].value)
    value: Any = parts[Part.VALUE].value
    if (map_key := parts.get(Part.MAP_KEY)) is not None:
        return [(*head, map_key.value, value)]
    if meta.keyed_state_type == "MAP" and isinstance(meta.value_serializer, MapSerializer):
        # A heap snapshot has the map as one value.
        return [(*head, key, item) for key, item in value or ()]
    return [(*head, value)]


class _KeyedSource(Protocol):
    """Keyed state of one handle: its states, and the entries of each with their key groups."""

    @property
    def header(self) -> KeyedHeader: ...

    def entries(self, state_id: int) -> Iterator[tuple[int, Entry]]: ...


class _StreamSource:
    """Keyed state in one stream, of a heap snapshot or a canonical savepoint."""

    def __init__(self, state: KeyedState) -> None:
        self._state = state
        self.header = state.header

    def entries(self, state_id: int) -> Iterator[tuple[int, Entry]]:
        for group in self._state.key_groups():
            for entry in self._state.entries(group):
                if entry.state == state_id:
                    yield group.key_group, entry


def _keyed_states(
    checkpoint: m.CheckpointMetadata, files: StateFiles
) -> Iterator[tuple[m.OperatorState, _KeyedSource]]:
    for operator in checkpoint.operator_states:
        for subtask in operator.subtask_states.values():
            if (handle := subtask.managed_keyed_state) is None:
                continue
            if isinstance(handle, m.IncrementalRemoteKeyedStateHandle):
                with RocksDbState(handle, files, operator.max_parallelism) as rows:
                    _require_known(operator, rows.header)
                    yield operator, rows
            elif isinstance(handle, (m.KeyGroupsStateHandle, m.KeyGroupsSavepointStateHandle)):
                with files.open(handle.delegate_state_handle) as stream:
                    state = KeyedState(handle, stream, operator.max_parallelism)
                    _require_known(operator, state.header)
                    yield operator, _StreamSource(state)
            else:
                reason = f"a {type(handle).__name__}, whose files cannot be read as rows; take a canonical savepoint"
                raise UnsupportedFlinkStateError(operator.operator_id.hex(), reason)


def _require_known(operator: m.OperatorState, header: KeyedHeader) -> None:
    if (unknown := header.unknown) is not None:
        reason = f"its values have the unknown serializer {unknown.class_name}; `inspect` shows their bytes"
        raise UnsupportedFlinkStateError(operator.operator_id.hex(), reason)
