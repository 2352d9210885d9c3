"""Keyed state of real Flink as Arrow, beside its entries."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from spark_ckpt.metadata.streams import KeyedState, Layout
from spark_ckpt.metadata.streams.types.text import STRING
from spark_ckpt.state import flink
from spark_ckpt.state.errors import StateNotFoundError, UnsupportedFlinkStateError
from spark_ckpt.state.flink import list_flink_states, read_flink_state
from spark_ckpt.state.flink_types import arrow_type
from tests.metadata.streams.corpus import BACKENDS, JOBS, StateVector, backend, entries_of, job, with_unknown_class

READABLE = [vector for vector in (*JOBS, *BACKENDS) if len(list(vector.key_groups())) == len(list(vector.keyed())) > 0]


def entries_by_state(vector: StateVector) -> Counter[tuple[bytes, str]]:
    """Number of entries by operator and state, elements of maps counted one by one."""
    found: Counter[tuple[bytes, str]] = Counter()
    for operator, handle in vector.key_groups():
        with vector.files.open(handle.delegate_state_handle) as stream:
            state = KeyedState(handle, stream, operator.max_parallelism)
            for _, entry in entries_of(state):
                meta = state.header.states[entry.state]
                whole_map = meta.keyed_state_type == "MAP" and state.layout is Layout.HEAP
                value = [*entry.parts.values()][-1].value
                found[operator.operator_id, meta.name] += len(value) if whole_map and isinstance(value, tuple) else 1
    return found


@pytest.mark.parametrize("vector", READABLE, ids=str)
def test_each_entry_is_a_row(vector: StateVector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flink, "BATCH_ROWS", 7)
    found: Counter[tuple[bytes, str]] = Counter()
    for state in list_flink_states(vector.metadata, vector.files):
        for batch in read_flink_state(vector.metadata, vector.files, state=state.name, operator_id=state.operator_id):
            assert 0 < batch.num_rows <= 7
            assert batch.schema.names == ["key_group", *(name for name, _ in state.columns)]
            found[state.operator_id, state.name] += batch.num_rows
    assert found == entries_by_state(vector)
    assert found.total() > 0


@pytest.mark.parametrize("name", ["unknown-heap", "unknown-full"])
def test_rows_are_typed(name: str) -> None:
    vector = backend(name)
    table = pa.Table.from_batches(read_flink_state(vector.metadata, vector.files, state="instant"))
    assert table.to_pylist() == [{"key_group": 1, "key": 7, "namespace": None, "value": {"seconds": 7, "nanos": 0}}]


def test_an_unknown_state_is_named_with_those_there_are() -> None:
    vector = backend("unknown-heap")
    with pytest.raises(StateNotFoundError, match="no state 'other'") as missing:
        read_flink_state(vector.metadata, vector.files, state="other")
    assert {name.split(" of ")[0] for name in missing.value.available} == {"known", "instant", "behind"}


@pytest.mark.parametrize("name", ["unknown-heap", "unknown-full"])
def test_an_unknown_serializer_is_named(name: str, tmp_path: Path) -> None:
    vector = with_unknown_class(backend(name), tmp_path)
    with pytest.raises(UnsupportedFlinkStateError, match="UnknownSerializerSnapshot"):
        list_flink_states(vector.metadata, vector.files)


def test_a_changelog_is_named() -> None:
    vector = job("f120-changelog-fs-heap-p1")
    with pytest.raises(UnsupportedFlinkStateError, match="ChangelogStateBackendHandle"):
        list_flink_states(vector.metadata, vector.files)


def test_a_value_that_arrow_cannot_hold_is_named() -> None:
    state = flink.FlinkState(bytes(16), "names", "VALUE", ())
    with pytest.raises(UnsupportedFlinkStateError, match="names: Arrow cannot hold a value"):
        flink._array(state, "value", arrow_type(STRING), ["a lone surrogate: \ud800"])


def test_states_of_the_same_name_need_the_operator() -> None:
    vector = backend("unknown-heap")
    (operator,) = vector.metadata.operator_states
    other = replace(operator, operator_id=bytes(16))
    both = replace(vector.metadata, operator_states=(operator, other))
    with pytest.raises(StateNotFoundError, match="several operators"):
        read_flink_state(both, vector.files, state="known")
    rows = pa.Table.from_batches(read_flink_state(both, vector.files, state="known", operator_id=bytes(16)))
    assert rows.num_rows == 1
