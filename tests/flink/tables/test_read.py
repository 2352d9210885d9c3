"""Keyed state of real Flink as Arrow, beside its entries."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import KeyedState, Layout, StateFiles, StateStream, UnknownSerializerError
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.flink.tables import read
from spark_ckpt.flink.tables.catalog import FlinkCatalog
from spark_ckpt.flink.tables.columns import Column, StateColumns
from spark_ckpt.flink.tables.read import list_flink_states, read_flink_state
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.metadata.traversal import with_parts
from spark_ckpt.state.errors import StateNotFoundError, UnsupportedFlinkStateError
from tests.flink.streams.corpus import (
    BACKENDS,
    JOBS,
    StateVector,
    backend,
    entries_of,
    job,
    with_unknown_class,
    with_unknown_end,
)

READABLE = [vector for vector in (*JOBS, *BACKENDS) if len(list(vector.key_groups())) == len(list(vector.keyed())) > 0]


def entries_by_state(vector: StateVector) -> Counter[tuple[bytes, str]]:
    """Number of entries by operator and state, elements of lists and maps counted one by one."""
    found: Counter[tuple[bytes, str]] = Counter()
    for operator, handle in vector.key_groups():
        with vector.files.open(handle.delegate_state_handle) as stream:
            state = KeyedState(handle, stream, operator.max_parallelism)
            for _, entry in entries_of(state):
                meta = state.header.states[entry.state]
                is_many = meta.keyed_state_type == "LIST" or (
                    meta.keyed_state_type == "MAP" and state.layout is Layout.HEAP
                )
                value = [*entry.parts.values()][-1].value
                found[operator.operator_id, meta.name] += len(value) if is_many and isinstance(value, tuple) else 1
    return found


@pytest.mark.parametrize("vector", READABLE, ids=str)
def test_each_entry_is_a_row(vector: StateVector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "BATCH_ROWS", 7)
    found: Counter[tuple[bytes, str]] = Counter()
    for state in list_flink_states(vector.metadata, vector.files):
        scan = read_flink_state(vector.metadata, vector.files, state=state.name, operator=state.operator_id.hex())
        for batch in scan.batches():
            assert 0 < batch.num_rows <= 7
            assert batch.schema == state.columns.schema
            found[state.operator_id, state.name] += batch.num_rows
    assert found == entries_by_state(vector)
    assert found.total() > 0


@pytest.mark.parametrize("name", ["unknown-heap", "unknown-full"])
def test_rows_are_typed(name: str) -> None:
    vector = backend(name)
    table = read_flink_state(vector.metadata, vector.files, state="instant").to_arrow()
    value = {"seconds": 7, "nanos": 0}
    assert table.to_pylist() == [{"key": 7, "value": value, "key_group": 1, "partition_id": 0}]


@pytest.mark.parametrize("layout", ["heap", "full", "heap-compressed", "full-compressed"])
def test_columns_are_those_of_spark(layout: str) -> None:
    vector = backend(f"types-{layout}")
    states = {state.kind: state for state in list_flink_states(vector.metadata, vector.files)}
    window = pa.struct([("start", pa.timestamp("ms", "UTC")), ("end", pa.timestamp("ms", "UTC"))])
    last = [pa.field("key_group", pa.int32()), pa.field("partition_id", pa.int32())]
    first = [pa.field("key", pa.int32()), pa.field("namespace", window)]
    for kind, columns in {
        "VALUE": ["value"],
        "LIST": ["list_element"],
        "MAP": ["user_map_key", "user_map_value"],
        "PRIORITY_QUEUE": ["expiration_timestamp_ms"],
    }.items():
        assert states[kind].columns.schema.names[len(first) : -len(last)] == columns
    for state in states.values():
        assert [*list(state.columns.schema)[: len(first)], *list(state.columns.schema)[-len(last) :]] == first + last


def test_an_unknown_state_is_named_with_those_there_are() -> None:
    vector = backend("unknown-heap")
    with pytest.raises(StateNotFoundError, match="no state 'other'") as missing:
        read_flink_state(vector.metadata, vector.files, state="other")
    assert {name.split(" of ")[0] for name in missing.value.available} == {"known", "instant", "behind"}
    with pytest.raises(StateNotFoundError, match="choose a state"):
        read_flink_state(vector.metadata, vector.files)
    with pytest.raises(StateNotFoundError, match=r"no operator 'x' has state; available: [0-9a-f]{32}$"):
        read_flink_state(vector.metadata, vector.files, operator="x")


def test_values_of_an_unknown_class_are_bytes(tmp_path: Path) -> None:
    vector = with_unknown_class(backend("unknown-full"), tmp_path)
    (row,) = read_flink_state(vector.metadata, vector.files, state="instant").to_arrow().to_pylist()
    assert row["value"].pop("class").endswith(".UnknownSerializer$UnknownSerializerSnapshot")
    assert row == {"key": 7, "value": {"bytes": struct.pack(">qi", 7, 0)}, "key_group": 1, "partition_id": 0}
    for name, value in (("known", 49), ("behind", 50)):
        (row,) = read_flink_state(vector.metadata, vector.files, state=name).to_arrow().to_pylist()
        assert row["value"] == value


def test_values_of_an_unknown_class_in_a_heap_snapshot_are_bytes_of_their_key_group(tmp_path: Path) -> None:
    """Nobody knows where a value ends: the bytes include its namespace and key, and later states."""
    vector = with_unknown_class(backend("unknown-heap"), tmp_path)
    names = [state.name for state in list_flink_states(vector.metadata, vector.files)]
    (row,) = read_flink_state(vector.metadata, vector.files, state="instant").to_arrow().to_pylist()
    assert row["value"]["class"].endswith(".UnknownSerializer$UnknownSerializerSnapshot")
    assert row["value"]["bytes"].startswith(struct.pack(">xqqi", 7, 7, 0))
    assert (row["key_group"], row.keys()) == (1, {"value", "key_group", "partition_id"})
    for name in names:
        scan = read_flink_state(vector.metadata, vector.files, state=name)
        if names.index(name) < names.index("instant"):
            assert scan.to_arrow().num_rows == 1
        elif name != "instant":
            with pytest.raises(UnknownSerializerError, match="UnknownSerializerSnapshot"):
                scan.to_arrow()


@pytest.mark.parametrize("name", ["unknown-heap", "unknown-full"])
def test_states_without_names_are_not_missing(name: str, tmp_path: Path) -> None:
    vector = with_unknown_end(with_unknown_class(backend(name), tmp_path))
    with pytest.raises(UnsupportedFlinkStateError, match=r"behind the unknown serializer .*UnknownSerializerSnapshot"):
        read_flink_state(vector.metadata, vector.files, state="instant")


@pytest.mark.parametrize("name", ["unknown-heap", "unknown-full"])
def test_operators_with_states_without_names_say_so(name: str, tmp_path: Path) -> None:
    vector = with_unknown_end(with_unknown_class(backend(name), tmp_path))
    catalog = FlinkCatalog("place", vector.metadata, vector.files)
    (operator,) = catalog.operators
    (reason,) = catalog.unread(operator)
    count = len(list_flink_states(backend(name).metadata, backend(name).files))
    hidden = count - len(catalog.states())
    assert hidden > 0
    assert reason.startswith(f"{hidden} of {count} states behind the unknown serializer ")


@pytest.mark.parametrize("name", ["unknown-heap", "unknown-full"])
def test_no_state_is_chosen_beside_states_without_names(name: str, tmp_path: Path) -> None:
    """Another operator may have a state of this name."""
    vector = with_unknown_end(with_unknown_class(backend(name), tmp_path))
    (hidden,) = vector.metadata.operator_states
    other = job("f120-heap-p1-file")
    both = replace(other.metadata, operator_states=(*other.metadata.operator_states, hidden))
    files = StateFiles(other.place, [str(other.directory), str(vector.directory)])
    names = {state.name: state.operator_id.hex() for state in list_flink_states(both, files)}
    chosen = next(name for name, operator in names.items() if operator != hidden.operator_id.hex())
    found = read_flink_state(both, files, state=chosen, operator=names[chosen])
    assert found.state.name == chosen
    for operator, state in ((None, chosen), (hidden.operator_id.hex(), chosen)):
        with pytest.raises(UnsupportedFlinkStateError, match="behind the unknown serializer"):
            read_flink_state(both, files, state=state, operator=operator)


def test_a_changelog_is_named() -> None:
    vector = job("f120-changelog-fs-heap-p1")

    def without_materialised(part: object) -> object:
        return replace(part, materialized_state_handles=()) if isinstance(part, m.ChangelogStateBackendHandle) else part

    with pytest.raises(UnsupportedFlinkStateError, match="all of it is in a changelog"):
        list_flink_states(with_parts(vector.metadata, without_materialised), vector.files)


def test_the_materialised_part_of_a_changelog_is_read(caplog: pytest.LogCaptureFixture) -> None:
    vector, changes = job("f120-heap-p1-file"), job("f120-changelog-fs-heap-p1")
    (changelog,) = (
        subtask.managed_keyed_state
        for _, _, subtask in changes.subtasks()
        if isinstance(subtask.managed_keyed_state, m.ChangelogStateBackendHandle)
    )

    def with_changelog(handle: object) -> object:
        if not isinstance(handle, m.OperatorSubtaskState) or handle.managed_keyed_state is None:
            return handle
        both = replace(changelog, materialized_state_handles=(None, handle.managed_keyed_state))
        return replace(handle, managed_keyed_state=both)

    expected = list_flink_states(vector.metadata, vector.files)
    metadata = with_parts(vector.metadata, with_changelog)
    for state in expected:
        arguments = {"state": state.name, "operator": state.operator_id.hex()}
        found = read_flink_state(metadata, vector.files, **arguments).to_arrow()
        assert found == read_flink_state(vector.metadata, vector.files, **arguments).to_arrow()
        assert found.num_rows
    assert "only the materialised part is read" in caplog.text


def test_a_value_that_arrow_cannot_hold_is_named() -> None:
    column = Column("value", "String", arrow_type(STRING))
    columns = StateColumns("names", (column,), 0, lambda entry: [])
    with pytest.raises(UnsupportedFlinkStateError, match="names: Arrow cannot hold a value"):
        columns.batch([("a lone surrogate: \ud800",)], [0], 0)


def test_states_of_the_same_name_need_the_operator() -> None:
    vector = backend("unknown-heap")
    (operator,) = vector.metadata.operator_states
    other = replace(operator, operator_id=bytes(16), uid="second", name="Second operator")
    both = replace(vector.metadata, operator_states=(operator, other))
    with pytest.raises(StateNotFoundError, match="several operators") as several:
        read_flink_state(both, vector.files, state="known")
    assert several.value.available[-1].endswith(f" of {bytes(16).hex()} (second)")
    for name in (bytes(16).hex(), "second", "Second operator"):
        assert read_flink_state(both, vector.files, state="known", operator=name).to_arrow().num_rows == 1


@pytest.mark.parametrize("vector", [job("f120-rocksdb-incr-p2-second"), job("f120-heap-p2-compressed")], ids=str)
def test_each_file_is_opened_once(vector: StateVector, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()
    whole = StateFiles.open

    def count(files: StateFiles, handle: m.StreamStateHandle, **arguments: Any) -> StateStream:
        stream = whole(files, handle, **arguments)
        opened[stream.path] += 1
        return stream

    monkeypatch.setattr(StateFiles, "open", count)
    states = list_flink_states(vector.metadata, vector.files)
    name = next(state.name for state in states if state.kind == "MAP")
    opened.clear()
    assert read_flink_state(vector.metadata, vector.files, state=name).to_arrow().num_rows
    assert set(opened.values()) == {1}
