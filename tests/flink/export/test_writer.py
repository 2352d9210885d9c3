"""Savepoints that we write: byte by byte those of real Flink, and read back equal."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_ckpt import metadata as m
from spark_ckpt.errors import StorageError
from spark_ckpt.flink.export import entries, runs
from spark_ckpt.flink.export.errors import FlinkRowError, UnsupportedForFlinkError
from spark_ckpt.flink.export.model import (
    FlinkOperator,
    FlinkOperatorState,
    FlinkState,
    Rows,
    StateKind,
)
from spark_ckpt.flink.export.operator_id import operator_id_of
from spark_ckpt.flink.export.writer import key_groups_of_subtask, write_savepoint
from spark_ckpt.flink.streams import ManagedOperatorState, Part, Serializer, StateFiles
from spark_ckpt.flink.streams.types.primitives import BYTES, INT, LONG, TIME_WINDOW
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.storage import CreateOutcome, CreateResult, LocalStorage
from tests.flink.export.counts import ALL, write
from tests.flink.export.rewriting import keyed_streams, operators_of, rows_of
from tests.flink.streams.corpus import BACKENDS, JOBS, StateVector
from tests.flink.streams.types.flink_serializers import VARCHAR, timestamp

CANONICAL = [
    vector
    for vector in (*JOBS, *BACKENDS)
    if any(isinstance(handle, m.KeyGroupsSavepointStateHandle) for _, handle in vector.key_groups())
]
KEYS = ["", "ä名😀", "a", "x" * 200, *(f"key {number}" for number in range(300))]
TIMERS = FlinkState.timers(StateKind.EVENT_TIMER)
STATES = (
    FlinkState("sum", StateKind.VALUE, LONG),
    FlinkState("list", StateKind.LIST, LONG),
    FlinkState("map", StateKind.MAP, LONG, STRING),
    TIMERS,
    FlinkState.timers(StateKind.PROCESSING_TIMER),
)


def rows(keys: Sequence[Any], key: Serializer) -> dict[str, pa.RecordBatch]:
    """A row of each state for each key; lists have 0 to 3 elements."""
    column = pa.array(keys, arrow_type(key).type)
    many = np.arange(len(keys), dtype=np.int64)
    return {
        "sum": pa.RecordBatch.from_pydict({"key": column, "value": many}),
        "list": pa.RecordBatch.from_pydict(
            {"key": column, "value": [[0x2C2C2C2C2C2C2C2C] * (number % 4) for number in many]},
            pa.schema([("key", column.type), ("value", pa.list_(pa.int64()))]),
        ),
        "map": pa.RecordBatch.from_pydict(
            {"key": column, "map_key": ["m"] * len(keys), "value": [None, *map(int, many[1:])]}
        ),
        **{state.name: pa.RecordBatch.from_pydict({"key": column, "timestamp": many - 7}) for state in STATES[3:]},
    }


def streamed(batches: Mapping[str, pa.RecordBatch], size: int = 100) -> dict[str, Rows]:
    def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from (batch.slice(at, size) for at in range(0, len(batch), size))

    return {name: pieces(batch) for name, batch in batches.items()}


def files_of(directory: Path) -> StateFiles:
    return StateFiles(str(directory / "_metadata"))


def values(batch: pa.RecordBatch | pa.Table) -> list[str]:
    """Rows in a fixed order."""
    return sorted(map(repr, batch.to_pylist()))


def read_back(directory: Path) -> dict[tuple[bytes, str], pa.RecordBatch]:
    metadata, files = m.load(directory), files_of(directory)
    return {
        (operator.operator_id, state.name): rows_of(metadata, files, operator, state)
        for operator in operators_of(metadata, files)
        for state in operator.states
    }


def raw_rows(metadata: m.CheckpointMetadata, files: StateFiles) -> dict[tuple[bytes, str], list[tuple[bytes, bytes]]]:
    """Keys and values of each state in bytes, sorted. Behind the flag of a null, Flink's heap writes more."""
    found: dict[tuple[bytes, str], list[tuple[bytes, bytes]]] = {}
    for operator, keyed in keyed_streams(metadata, files):
        for number, meta in enumerate(keyed.header.states):
            of_state = found.setdefault((operator.operator_id, meta.name), [])
            for group in keyed.key_groups():
                for key, value in keyed.rows(group, number):
                    is_null = meta.keyed_state_type == "MAP" and value[:1] == b"\1"
                    of_state.append((key, value[:1] if is_null else value))
    return {key: sorted(of_state) for key, of_state in found.items()}


@pytest.mark.parametrize("vector", CANONICAL, ids=str)
def test_a_savepoint_of_flink_is_written_again_in_its_bytes(vector: StateVector, tmp_path: Path) -> None:
    operators = operators_of(vector.metadata, vector.files)
    assert operators
    parts: list[tuple[FlinkOperator, dict[str, Rows]]] = []
    for operator in operators:
        batches = {state.name: rows_of(vector.metadata, vector.files, operator, state) for state in operator.states}
        parts.append((operator, streamed(batches)))
    written = write_savepoint(LocalStorage(tmp_path, durable=False), parts)
    ours, files = m.load(tmp_path), files_of(tmp_path)
    assert raw_rows(ours, files) == raw_rows(vector.metadata, vector.files)
    assert sum(written.rows.values()) == sum(map(len, raw_rows(ours, files).values())) > 0
    headers = {operator.operator_id: keyed.header for operator, keyed in keyed_streams(vector.metadata, vector.files)}
    for written_operator, keyed in keyed_streams(ours, files):
        assert keyed.header.states == headers[written_operator.operator_id].states


@pytest.mark.parametrize("max_parallelism", [1, 128, 129, 1024])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_all_rows_are_read_back(tmp_path: Path, max_parallelism: int, parallelism: int) -> None:
    if parallelism > max_parallelism:
        parallelism = 1
    operator = FlinkOperator.of_uid("counts", STRING, STATES, max_parallelism)
    batches = rows(KEYS, STRING)
    written = write_savepoint(
        LocalStorage(tmp_path, durable=False), [(operator, streamed(batches))], parallelism=parallelism
    )
    assert sorted(written.files) == sorted(os.listdir(tmp_path))
    assert written.files[-1] == "_metadata"
    assert written.size == sum(path.stat().st_size for path in tmp_path.iterdir())
    found = read_back(tmp_path)
    for name, batch in batches.items():
        expected = batch
        if name == "list":
            expected = batch.filter(pa.array([number % 4 > 0 for number in range(len(batch))]))
        assert values(found[operator.operator_id, name]) == values(expected)
        assert written.rows[operator.operator_id, name] == len(expected)
    (state,) = m.load(tmp_path).operator_states
    assert (state.parallelism, state.max_parallelism) == (parallelism, max_parallelism)


@pytest.mark.parametrize("kind", ALL)
def test_keys_of_each_type_are_read_back(tmp_path: Path, kind: str) -> None:
    write(tmp_path, [kind], max_parallelism=300)
    found = read_back(tmp_path)
    for name, batches in ALL[kind].rows().items():
        expected = pa.Table.from_batches(batches)
        if name == "list":
            expected = expected.filter(pc.greater(pc.list_value_length(expected["value"]), 0))
        assert len(expected) > 10
        assert values(found[operator_id_of(ALL[kind].uid), name]) == values(expected)


def test_rows_that_exceed_memory_lie_in_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(runs, "RUN_BYTES", 2000)
    monkeypatch.setattr(runs, "MAX_IN_MEMORY", 5000)
    spilled = []
    close = runs.SpillFile.__exit__

    def closing(self: runs.SpillFile, *raised: Any) -> None:
        spilled.append((self.size, os.listdir(place)))
        close(self, *raised)

    monkeypatch.setattr(runs.SpillFile, "__exit__", closing)
    operator = FlinkOperator.of_uid("counts", STRING, STATES)
    batches = rows(KEYS, STRING)
    write_savepoint(LocalStorage(tmp_path / "in parts"), [(operator, streamed(batches))], parallelism=2)
    assert spilled[0][0] > 10_000
    assert spilled[0][1] == []
    monkeypatch.undo()
    write_savepoint(LocalStorage(tmp_path / "whole"), [(operator, streamed(batches))], parallelism=2)
    found, expected = read_back(tmp_path / "in parts"), read_back(tmp_path / "whole")
    assert {key: values(batch) for key, batch in found.items()} == {key: values(b) for key, b in expected.items()}


def test_large_values_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_PIECE", 7)
    operator = FlinkOperator.of_uid("counts", LONG, [FlinkState("bytes", StateKind.VALUE, BYTES)], 4)
    content = pa.array([bytes(number) for number in range(100)], pa.binary())
    batch = pa.RecordBatch.from_pydict({"key": range(100), "value": content})
    write_savepoint(LocalStorage(tmp_path), [(operator, streamed({"bytes": batch}))])
    assert values(read_back(tmp_path)[operator.operator_id, "bytes"]) == values(batch)


def test_several_operators_and_an_empty_state(tmp_path: Path) -> None:
    first = FlinkOperator.of_uid("first", LONG, [FlinkState("sum", StateKind.VALUE, LONG)])
    second = FlinkOperator(None, bytes(range(16)), INT, [FlinkState("sum", StateKind.VALUE, STRING)], 7)
    some = pa.RecordBatch.from_pydict({"key": [1 << 40], "value": [5]})
    none = pa.RecordBatch.from_pydict({"key": pa.array([], pa.int32()), "value": pa.array([], pa.string())})
    write_savepoint(
        LocalStorage(tmp_path), [(first, {"sum": iter([some])}), (second, {"sum": iter([none])})], checkpoint_id=9
    )
    metadata = m.load(tmp_path)
    assert (metadata.version, metadata.checkpoint_id) == (3, 9)
    assert [operator.operator_id for operator in metadata.operator_states] == [first.operator_id, bytes(range(16))]
    found = read_back(tmp_path)
    assert values(found[first.operator_id, "sum"]) == values(some)
    assert found[second.operator_id, "sum"].num_rows == 0


def test_namespaces(tmp_path: Path) -> None:
    states = [
        FlinkState("windows", StateKind.VALUE, LONG, namespace=TIME_WINDOW),
        FlinkState("long names", StateKind.VALUE, LONG, namespace=STRING),
        FlinkState.timers(StateKind.EVENT_TIMER, "window-timers", TIME_WINDOW),
    ]
    operator = FlinkOperator.of_uid("windows", STRING, states, 300)
    window = pa.array([{"start": 0, "end": 5}] * 2, arrow_type(TIME_WINDOW).type)
    key = ["a", "x" * 300]
    batches = {
        "windows": pa.RecordBatch.from_pydict({"key": key, "namespace": window, "value": [1, 2]}),
        "long names": pa.RecordBatch.from_pydict({"key": key, "namespace": ["n" * 300, ""], "value": [3, 4]}),
        states[2].name: pa.RecordBatch.from_pydict({"key": key, "namespace": window, "timestamp": [-1, 1]}),
    }
    write_savepoint(LocalStorage(tmp_path), [(operator, streamed(batches))])
    found = read_back(tmp_path)
    assert {name: values(found[operator.operator_id, name]) for name in batches} == {
        name: values(batch) for name, batch in batches.items()
    }


def test_operator_state(tmp_path: Path) -> None:
    states = [
        FlinkOperatorState("splits", BYTES, [b"a", b"", b"c"]),
        FlinkOperatorState("union", LONG, [5], m.DistributionMode.UNION),
    ]
    operator = FlinkOperator("source", bytes(16), None, operator_states=states, coordinator_state=b"enumerator")
    write_savepoint(LocalStorage(tmp_path), [(operator, {})], parallelism=2)
    (state,) = m.load(tmp_path).operator_states
    assert state.coordinator_state is not None
    assert state.coordinator_state.data == b"enumerator"
    found: dict[str, list[list[Any]]] = {"splits": [], "union": []}
    for subtask in state.subtask_states.values():
        handle = subtask.managed_operator_state
        assert isinstance(handle, m.OperatorStreamStateHandle)
        assert handle.state_name_to_partition_offsets["union"].distribution_mode is m.DistributionMode.UNION
        with files_of(tmp_path).open(handle.delegate_state_handle) as stream:
            managed = ManagedOperatorState(handle, stream)
            elements: dict[str, list[Any]] = {"splits": [], "union": []}
            for entry in managed.entries():
                elements[managed.states[entry.state].name].append(entry.parts[Part.ELEMENT].value)
        for name, of_state in elements.items():
            found[name].append(of_state)
    assert found == {"splits": [[b"a", b"c"], [b""]], "union": [[5], []]}


def test_keys_of_generated_code_are_found_in_their_key_group(tmp_path: Path) -> None:
    key = RowDataSerializer((VARCHAR, timestamp(6)))
    column = pa.array([{"kind": 0, "f0": f"k{n}", "f1": None} for n in range(50)], arrow_type(key).type)
    found = {}
    for codegen in (False, True):
        operator = FlinkOperator.of_uid("q", key, [FlinkState("n", StateKind.VALUE, LONG)], codegen=codegen)
        batch = pa.RecordBatch.from_pydict({"key": column, "value": range(50)})
        write_savepoint(LocalStorage(tmp_path / str(codegen)), [(operator, {"n": iter([batch])})])
        # The reader checks each key against its key group, by the bytes of the row.
        found[codegen] = raw_rows(m.load(tmp_path / str(codegen)), files_of(tmp_path / str(codegen)))
        assert values(read_back(tmp_path / str(codegen))[operator.operator_id, "n"]) == values(batch)
    assert found[False] != found[True]


def test_progress(tmp_path: Path) -> None:
    seen: list[int] = []
    operator = FlinkOperator.of_uid("counts", STRING, STATES)
    write_savepoint(LocalStorage(tmp_path), [(operator, streamed(rows(KEYS, STRING)))], progress=seen.append)
    assert seen[:4] == [100, 200, 300, 304]
    assert seen[-1] == 304 * 5


@pytest.mark.parametrize(
    ("batch", "row", "column", "reason"),
    [
        ({"key": ["a", None], "value": [1, 2]}, 3, "key", "no null keys"),
        ({"key": ["a", "b"], "value": [1, None]}, 3, "value", "leave the row out"),
        ({"key": ["a", "b"], "value": ["1", "2"]}, None, "value", "the type string; int64 is expected"),
        ({"key": ["a", "b"], "other": [1, 2]}, None, "key, other", "which are key, value"),
    ],
)
def test_a_row_that_does_not_fit(
    tmp_path: Path, batch: dict[str, Any], row: int | None, column: str, reason: str
) -> None:
    operator = FlinkOperator.of_uid("counts", STRING, [STATES[0]])
    first = pa.RecordBatch.from_pydict({"key": ["x", "y"], "value": [1, 2]})
    with pytest.raises(FlinkRowError, match=reason) as error:
        write_savepoint(LocalStorage(tmp_path), [(operator, {"sum": iter([first, pa.RecordBatch.from_pydict(batch)])})])
    assert (error.value.row, error.value.column, error.value.state) == (row, column, "sum")
    assert "(counts)" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_the_row_of_a_list_is_counted_with_the_empty_ones(tmp_path: Path) -> None:
    operator = FlinkOperator.of_uid("counts", STRING, [STATES[1]])
    batch = pa.RecordBatch.from_pydict({"key": ["a", "b", None], "value": pa.array([[], [1], [2]])})
    with pytest.raises(FlinkRowError) as error:
        write_savepoint(LocalStorage(tmp_path), [(operator, {"list": iter([batch])})])
    assert error.value.row == 2


def test_an_element_of_operator_state_that_does_not_fit(tmp_path: Path) -> None:
    operator = FlinkOperator("s", bytes(16), None, operator_states=[FlinkOperatorState("splits", BYTES, [b"", "x"])])
    with pytest.raises(FlinkRowError) as error:
        write_savepoint(LocalStorage(tmp_path), [(operator, {})])
    assert (error.value.state, error.value.row) == ("splits", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_savepoint_is_not_overwritten(tmp_path: Path) -> None:
    operator = FlinkOperator.of_uid("counts", STRING, [STATES[0]])
    batches = {"sum": rows(KEYS, STRING)["sum"]}
    write_savepoint(LocalStorage(tmp_path), [(operator, streamed(batches))])
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TargetExistsError):
        write_savepoint(LocalStorage(tmp_path), [(operator, streamed(batches))])
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


class Failing(LocalStorage):
    """Storage that fails at the second state file, or finds another `_metadata` at the end."""

    fails_at = 2
    is_late = False

    def write_chunks(self, name: str, chunks: Any) -> None:
        super().write_chunks(name, chunks)
        self.fails_at -= 1
        if not self.fails_at:
            raise StorageError(name, "write", "no space")

    def exists(self, name: str) -> bool:
        return not self.is_late and super().exists(name)


@pytest.mark.parametrize("is_late", [False, True])
def test_files_of_a_failed_attempt_are_deleted(tmp_path: Path, is_late: bool) -> None:
    storage = Failing(tmp_path)
    operator = FlinkOperator.of_uid("counts", STRING, [STATES[0]])
    if is_late:
        storage.is_late, storage.fails_at = True, 0
        storage.write_atomic("_metadata", b"of another process")
    with pytest.raises(TargetExistsError if is_late else StorageError):
        write_savepoint(storage, [(operator, streamed({"sum": rows(KEYS, STRING)["sum"]}))], parallelism=3)
    assert [file.name for file in storage.list("")] == (["_metadata"] if is_late else [])


class Unanswered(LocalStorage):
    """Storage whose answer to the create of `_metadata` is lost, or whose create fails.

    Args:
        root: the directory.
        is_created: True if the file may be there.
    """

    def __init__(self, root: Path, *, is_created: bool) -> None:
        super().__init__(root)
        self.is_created = is_created

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        if not self.is_created:
            raise StorageError(name, "create", "no permission")
        super().create_exclusive(name, data)
        return CreateResult(CreateOutcome.UNKNOWN)

    def read(self, name: str) -> bytes:
        raise StorageError(name, "read", "no connection")


@pytest.mark.parametrize("is_created", [False, True])
def test_files_stay_if_the_metadata_may_refer_to_them(tmp_path: Path, is_created: bool) -> None:
    operator = FlinkOperator.of_uid("counts", STRING, [STATES[0]])
    batch = rows(KEYS, STRING)["sum"]
    with pytest.raises(StorageError):
        write_savepoint(Unanswered(tmp_path, is_created=is_created), [(operator, {"sum": iter([batch])})])
    if is_created:
        assert values(read_back(tmp_path)[operator.operator_id, "sum"]) == values(batch)
    else:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("batches", "parallelism", "reason"),
    [
        ({}, 1, "a state without rows"),
        ({"sum": None, "other": None}, 1, "rows without a state"),
        ({"sum": None}, 129, "the max parallelism allows 1 to 128"),
        ({"sum": None}, 0, "the max parallelism allows 1 to 128"),
    ],
)
def test_an_inconsistent_call(tmp_path: Path, batches: dict[str, None], parallelism: int, reason: str) -> None:
    operator = FlinkOperator.of_uid("counts", STRING, [STATES[0]])
    given: dict[str, Rows] = {name: iter(()) for name in batches}
    with pytest.raises(UnsupportedForFlinkError, match=reason):
        write_savepoint(LocalStorage(tmp_path), [(operator, given)], parallelism=parallelism)
    with pytest.raises(UnsupportedForFlinkError, match="two operators"):
        write_savepoint(LocalStorage(tmp_path), [(operator, {"sum": iter(())}), (operator, {"sum": iter(())})])


@pytest.mark.parametrize("max_parallelism", [1, 7, 128, 1024])
def test_key_groups_of_subtasks_are_contiguous(max_parallelism: int) -> None:
    for parallelism in range(1, min(max_parallelism, 20) + 1):
        ranges = [key_groups_of_subtask(index, parallelism, max_parallelism) for index in range(parallelism)]
        assert [key_group for each in ranges for key_group in each] == list(range(max_parallelism))


def test_a_batch_of_many_rows_is_encoded_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MAX_ROWS", 7)
    operator = FlinkOperator.of_uid("counts", STRING, STATES)
    batches = rows(KEYS, STRING)
    write_savepoint(LocalStorage(tmp_path), [(operator, {name: iter([batch]) for name, batch in batches.items()})])
    found = read_back(tmp_path)
    assert values(found[operator.operator_id, "sum"]) == values(batches["sum"])
    assert values(found[operator.operator_id, "map"]) == values(batches["map"])
