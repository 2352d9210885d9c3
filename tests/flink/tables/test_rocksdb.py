"""Rows of Flink's incremental checkpoints and native savepoints, without RocksDB."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from spark_ckpt import metadata as m
from spark_ckpt.flink.rocksdb import MissingTableError, RocksDbFormatError
from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.tables.read import list_flink_states, read_flink_state
from spark_ckpt.flink.tables.rocksdb import RocksDbState
from spark_ckpt.metadata.keyrange import KeyGroupRange
from spark_ckpt.state.errors import UnsupportedFlinkStateError
from tests.flink.streams.corpus import JOBS, ROWS, StateVector, job

INCREMENTAL = [
    vector for vector in JOBS if any(isinstance(h, m.IncrementalRemoteKeyedStateHandle) for _, h in vector.keyed())
]


def handles(vector: StateVector) -> list[tuple[m.OperatorState, m.IncrementalRemoteKeyedStateHandle]]:
    return [(op, h) for op, h in vector.keyed() if isinstance(h, m.IncrementalRemoteKeyedStateHandle)]


def rows(vector: StateVector, kind: str) -> list[dict[str, Any]]:
    """Rows of the only state of a kind."""
    (state,) = (state for state in list_flink_states(vector.metadata, vector.files) if state.kind == kind)
    table = read_flink_state(vector.metadata, vector.files, state=state.name).to_arrow()
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def entries(vector: StateVector, kind: str, **fields: Any) -> list[tuple[int, Any]]:
    """Key groups and keys of a state in the first handle, some fields of which are changed."""
    operator, handle = handles(vector)[0]
    with RocksDbState(replace(handle, **fields), vector.files, operator.max_parallelism) as state:
        (state_id,) = (n for n, meta in enumerate(state.header.states) if meta.keyed_state_type == kind)
        return [(group, next(iter(entry.parts.values())).value) for group, entry in state.entries(state_id)]


@pytest.mark.parametrize("vector", ROWS, ids=str)
def test_rows_are_those_that_the_job_has_written(vector: StateVector) -> None:
    """Keys of SQL, two bytes of key group, values with a time to live, keys that were cleared, and a rescaled job."""
    numbers = [number for number in range(vector.job["keys"]) if number % 3 != 2]
    keys = {number: {"kind": 0, "f0": f"key {number}", "f1": number} for number in numbers}
    records = {number: 3 * (1 + number % 2) for number in numbers}

    def of(state: str) -> dict[int, list[dict[str, Any]]]:
        found: dict[int, list[dict[str, Any]]] = {}
        for row in read_flink_state(vector.metadata, vector.files, state=state).to_arrow().to_pylist():
            assert row["key"] == keys[row["key"]["f1"]]
            found.setdefault(row["key"]["f1"], []).append(row)
        return found

    values = {name: {k: [row["value"] for row in rows] for k, rows in of(name).items()} for name in ("sum", "ttl")}
    assert values["sum"] == {k: [records[k] * k + (records[k] - 3) * 1_000_000] for k in numbers}
    assert {k: [value["value"] for value in each] for k, each in values["ttl"].items()} == {k: [k] for k in numbers}
    assert {k: [row["list_element"] for row in rows] for k, rows in of("list").items()} == {
        k: [k] * records[k] for k in numbers
    }
    assert {k: [(row["user_map_key"], row["user_map_value"]) for row in rows] for k, rows in of("map").items()} == {
        k: [(f"m{k % 5}", k)] for k in numbers
    }


def test_operators_have_names_since_version_5() -> None:
    (vector,) = (vector for vector in ROWS if str(vector).startswith("f20"))
    (operator,) = {state.operator_id for state in list_flink_states(vector.metadata, vector.files)}
    tables = [
        read_flink_state(vector.metadata, vector.files, state="sum", operator=name).to_arrow()
        for name in ("by-row", "KeyedProcess", operator.hex())
    ]
    assert tables[0].num_rows
    assert tables[0] == tables[1] == tables[2]


def test_there_are_vectors_of_each_kind() -> None:
    assert {str(vector).partition("-")[0] for vector in INCREMENTAL} >= {"f113", "f115", "f120"}
    assert any("native" in str(vector) for vector in INCREMENTAL)


@pytest.mark.parametrize("vector", INCREMENTAL, ids=str)
def test_states_of_one_operator_agree(vector: StateVector) -> None:
    """The job keeps each value in a list, and sums and counts them."""
    lists: dict[Any, list[str]] = {}
    for row in rows(vector, "LIST"):
        lists.setdefault(row["key"], []).append(row["list_element"])
    assert lists
    assert {row["key"]: row["value"] for row in rows(vector, "VALUE")} == {
        key: sum(int(text[1:]) for text in seen) for key, seen in lists.items()
    }
    counts = Counter((key, f"k{int(text[1:]) % 3}") for key, seen in lists.items() for text in seen)
    assert {(row["key"], row["user_map_key"]): row["user_map_value"] for row in rows(vector, "MAP")} == counts


@pytest.mark.parametrize("vector", INCREMENTAL, ids=str)
def test_each_subtask_has_the_keys_of_its_key_groups(vector: StateVector) -> None:
    keys: list[Any] = []
    for operator, handle in handles(vector):
        with RocksDbState(handle, vector.files, operator.max_parallelism) as state:
            found = list(state.entries(0))
        assert all(group in handle.key_group_range for group, _ in found)
        keys += [next(iter(entry.parts.values())).value for _, entry in found]
    assert len(keys) == len(set(keys)) > 0


def test_rows_of_other_key_groups_are_skipped() -> None:
    """A rescaled job leaves them in the files that it took over."""
    vector = job("f120-rocksdb-incr-p2-second")
    every = entries(vector, "VALUE")
    group = every[0][0]
    assert len(every) > 1
    assert entries(vector, "VALUE", key_group_range=KeyGroupRange(group, group)) == every[:1]


def test_a_key_in_the_wrong_key_group_is_an_error() -> None:
    vector = job("f120-rocksdb-incr-p2-second")
    operator, handle = handles(vector)[0]
    with (
        RocksDbState(replace(handle, key_group_range=KeyGroupRange(0, 99)), vector.files, 100) as state,
        pytest.raises(StateStreamFormatError, match=r"state .*: the key \d+ belongs to key group"),
    ):
        list(state.entries(0))
    assert operator.max_parallelism != 100


def test_a_missing_table_and_a_missing_manifest_are_named() -> None:
    vector = job("f120-rocksdb-incr-p2-second")
    with pytest.raises(MissingTableError, match=r"\.sst, which is not among the files"):
        entries(vector, "VALUE", shared_state=())
    with pytest.raises(RocksDbFormatError, match=r"backend .*: the file that names the MANIFEST is missing"):
        entries(vector, "VALUE", private_state=())


def test_a_handle_without_a_description_is_refused() -> None:
    with pytest.raises(UnsupportedFlinkStateError, match="no description of its states"):
        entries(job("f120-rocksdb-incr-p2-second"), "VALUE", meta_data_state_handle=None)
