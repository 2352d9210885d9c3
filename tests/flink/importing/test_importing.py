"""Imports of what real Flink wrote into locations without Spark. `tests/spark/test_from_flink.py` has real queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_ckpt import metadata as m
from spark_ckpt import read_state
from spark_ckpt.completed import FilesystemCompletedCheckpointStore
from spark_ckpt.coordinator import open_job
from spark_ckpt.flink.export.model import FlinkOperator, FlinkState, StateKind
from spark_ckpt.flink.export.writer import write_savepoint
from spark_ckpt.flink.importing import checking, import_flink_savepoint, rows
from spark_ckpt.flink.importing.errors import (
    FlinkImportCheckError,
    FlinkImportRefusedError,
    FlinkImportRowError,
    FlinkStateNotMappedError,
    FlinkTypeError,
)
from spark_ckpt.flink.importing.location import ImportLocation
from spark_ckpt.flink.streams.types.composites import TupleSerializer
from spark_ckpt.flink.streams.types.primitives import DOUBLE, FLOAT, LONG
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.format.segments import Section
from spark_ckpt.location.errors import ImportUnfinishedError
from spark_ckpt.location.import_marker import read_marker
from spark_ckpt.messages import Trigger
from spark_ckpt.operations.doctor import examine
from spark_ckpt.operations.rollback import roll_back
from spark_ckpt.operations.verify import verify
from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.state.errors import UnsupportedFlinkStateError
from spark_ckpt.state_writing import spill
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.storage import LocalStorage
from tests.flink.importing.places import OFFSETS, files_of, target, variables_of_the_vectors
from tests.flink.streams.corpus import JOBS, ROWS, StateVector, job, lay_out
from tests.support.locations import OWNER
from tests.support.state_location import Schema, row, schema

SAVEPOINT = "f120-savepoint-canonical-heap-p2"
WHOLE = [
    "f110-heap-p2-file",
    "f110-savepoint-heap-p1",
    "f113-rocksdb-full-p1",
    "f113-rocksdb-incr-p2",
    "f120-heap-p2-compressed",
    "f120-heap-p2-string-keys",
    "f120-heap-p3-few-keys",
    "f120-rocksdb-incr-p2-second",
    SAVEPOINT,
    "f120-savepoint-native-rocksdb-p2",
]
TARGETS = {
    "sum": "sum",
    "map": "map",
    "_timer_state/event_user-timers": "$eventTimers_keyToTimestamp",
    "_timer_state/processing_user-timers": "$procTimers_keyToTimestamp",
}
OPERATOR = "e7beec23fd9f6ed5e1b8395129d43728"


def laid_out(name: str, tmp_path: Path) -> str:
    """Directory of a vector's `_metadata` in its original layout."""
    return str(lay_out(job(name), tmp_path / "flink").parent)


def moved(name: str, tmp_path: Path) -> list[tuple[str, str]]:
    """The place of a vector's files, if they have absolute paths."""
    try:
        m.relocate(m.load(job(name).directory), "oracle://ckpt/", str(tmp_path))
    except m.NothingToRelocateError:
        return []
    return [("oracle://ckpt/", str(tmp_path / "flink"))]


def query(directory: Path, key: str = "long", changes: Mapping[str, tuple[Schema, Schema]] | None = None) -> Path:
    """A location for the states of the vectors."""
    families, kinds = variables_of_the_vectors(key)
    return Path(target(directory, families | dict(changes or {}), kinds).path)


def table(location: str, **arguments: Any) -> list[str]:
    """Rows of a table, without columns that the two sides number differently; sorted, but for a list's elements."""
    shown = read_state(location, **arguments).to_arrow()
    named = [name for name in shown.column_names if name not in ("partition_id", "key_group")]
    return sorted(repr(_plain(row)) for row in shown.select(named).to_pylist())


def _plain(value: Any) -> Any:
    """Values in the order of columns, structs of a single field as the field."""
    if isinstance(value, dict):
        parts = [_plain(part) for part in value.values()]
        return parts[0] if len(parts) == 1 else parts
    return value


@pytest.mark.parametrize("name", WHOLE)
def test_each_row_arrives(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in the query's state, by our reader of Spark's rows, are those of our reader of Flink's."""
    monkeypatch.setattr(spill, "BUFFER_BYTES", 500)
    source, places = laid_out(name, tmp_path), moved(name, tmp_path)
    location = query(tmp_path / "query", "string" if "string" in name else "long")
    list_name = "lïst-名-😀" if name == "f113-rocksdb-incr-p2" else "list"
    steps: list[tuple[int, int]] = []
    done = import_flink_savepoint(
        source, location, states={list_name: "list"}, moved=places, progress=lambda *step: steps.append(step)
    )
    assert steps == [(number, len(steps)) for number in range(1, len(steps) + 1)]
    for flink, spark in ({list_name: "list"} | TARGETS).items():
        expected = table(source, variable=flink, moved=places, operator=OPERATOR)
        assert table(str(location), variable=spark) == expected
        (state,) = (state for state in done.states if state.flink.endswith(f"/{flink}"))
        assert state.rows == len(expected)
    assert all(state.rows for state in done.states if "timer" not in state.flink)
    lengths = read_state(location, variable="$rowCounter_list").to_arrow().column("value").to_pylist()
    assert sum(length["count"] for length in lengths) == len(table(str(location), variable="list"))
    by_time = table(str(location), variable="$eventTimers_timestampToKey")
    assert len(by_time) == len(table(str(location), variable="$eventTimers_keyToTimestamp"))
    assert verify(LocalStorage(location), everything=True).is_whole
    log = SparkLog(LocalStorage(location))
    assert log.batches(BatchLog.COMMITS) == log.batches(BatchLog.OFFSETS) == [0, 1]
    assert log.offsets(1) == OFFSETS


@pytest.mark.parametrize("vector", ROWS, ids=str)
def test_keys_of_sql_rows(vector: StateVector, tmp_path: Path) -> None:
    source, places = str(lay_out(vector, tmp_path / "flink").parent), [("oracle://ckpt/", str(tmp_path / "flink"))]
    places = [] if not _has_root(vector) else places
    key = schema(text="string", number="long")
    families = {
        "sum": (key, schema(value="long")),
        "list": (key, schema(value="long")),
        "map": (schema(key=key, userKey=schema(name="string")), schema(n="long")),
    }
    location = target(tmp_path / "query", families, {"sum": "ValueState", "list": "ListState", "map": "MapState"}).path
    done = import_flink_savepoint(source, location, ignore=["ttl"], moved=places)
    assert done.ignored == (f"{done.states[0].flink.partition('/')[0]}/ttl",)
    found = read_state(location, variable="sum").to_arrow().to_pylist()
    expected = read_state(source, variable="sum", moved=places).to_arrow().to_pylist()
    assert sorted((each["key"]["text"], each["key"]["number"], each["value"]["value"]) for each in found) == sorted(
        (each["key"]["f0"], each["key"]["f1"], each["value"]) for each in expected
    )
    assert found
    assert done.states[0].columns[0][:2] == ("key.f0", "key.text")


def _has_root(vector: StateVector) -> bool:
    try:
        m.relocate(m.load(vector.directory), "oracle://ckpt/", "/x")
    except m.NothingToRelocateError:
        return False
    return True


def test_a_dry_run_lists_the_columns_and_writes_nothing(tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    before = files_of(location)
    plan = import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location, dry_run=True)
    assert files_of(location) == before
    assert plan.checkpoint_id is None
    by_name = {state.spark: state for state in plan.states}
    assert by_name["0/map"].columns == (
        ("key", "key.key", "int64", "int64"),
        ("user_map_key", "user_map_key.name", "string", "string"),
        ("user_map_value", "user_map_value.n", "int64", "int64"),
    )
    assert by_name["0/eventTimers"].columns[-1] == (
        "expiration_timestamp_ms",
        "key.expiryTimestampMs",
        "int64",
        "int64",
    )
    assert all(state.rows is None for state in plan.states)
    assert [each.states for each in plan.left_behind] == [("offset",)]


@pytest.mark.parametrize(
    ("family", "schemas", "column", "types"),
    [
        ("sum", (schema(key="long"), schema(value="string")), "value", ("int64", "string")),
        ("sum", (schema(key="long"), schema(value="integer")), "value", ("int64", "int32")),
        ("sum", (schema(key="long"), schema(a="long", b="long")), "value", ("int64", "struct")),
        ("sum", (schema(key="string"), schema(value="long")), "key", ("int64", "string")),
        ("list", (schema(key="long"), schema(value="binary")), "list_element", ("string", "binary")),
    ],
)
def test_types_that_do_not_fit(
    family: str, schemas: tuple[Any, Any], column: str, types: tuple[str, str], tmp_path: Path
) -> None:
    location = query(tmp_path / "query", changes={family: schemas})
    before = files_of(location)
    with pytest.raises(FlinkTypeError) as refused:
        import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location)
    error = refused.value
    assert (error.state, error.column, error.flink_type) == (family, column, types[0])
    assert error.spark_type.startswith(types[1])
    assert all(part in str(error) for part in (family, column, *types))
    assert files_of(location) == before


def test_a_state_without_a_variable_is_refused_for_its_rows(tmp_path: Path) -> None:
    families, kinds = variables_of_the_vectors("long")
    del kinds["sum"]
    del families["sum"]
    location = Path(target(tmp_path / "query", families, kinds).path)
    source = laid_out(SAVEPOINT, tmp_path)
    before = files_of(location)
    with pytest.raises(FlinkStateNotMappedError, match="no state variable of its name and kind") as refused:
        import_flink_savepoint(source, location)
    assert refused.value.state == f"{OPERATOR}/sum"
    assert "--ignore STATE" in str(refused.value)
    assert files_of(location) == before
    done = import_flink_savepoint(source, location, ignore=["sum"])
    assert done.ignored == (f"{OPERATOR}/sum",)


def test_a_variable_without_a_state_starts_empty(tmp_path: Path) -> None:
    families, kinds = variables_of_the_vectors("long")
    families["other"] = (schema(key="long"), schema(value="double"))
    location = target(tmp_path / "query", families, kinds | {"other": "ValueState"}).path
    assert import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location).empty == ("0/other",)
    assert table(location, variable="other") == []


def test_other_names(tmp_path: Path) -> None:
    families, kinds = variables_of_the_vectors("long")
    families["total"] = families.pop("sum")
    kinds["total"] = kinds.pop("sum")
    location = target(tmp_path / "query", families, kinds).path
    source = laid_out(SAVEPOINT, tmp_path)
    import_flink_savepoint(source, location, states={f"{OPERATOR}/sum": "0/total"})
    assert table(location, variable="total") == table(source, variable="sum")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"states": {"sum": "list"}}, "a state of kind VALUE cannot become 0/list, of kind list"),
        ({"states": {"sums": "sum"}}, "there is no such state"),
        ({"states": {"sum": "sums"}}, "the query has no 'sums'"),
        ({"ignore": ["x/sum"]}, "there is no such state"),
        ({"value_order": {"sums": ["f0"]}}, "an order of fields is given for sums"),
        ({"value_order": {"sum": ["f0"]}}, "does not fit"),
    ],
)
def test_names_that_do_not_exist(arguments: dict[str, Any], reason: str, tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    before = files_of(location)
    with pytest.raises((FlinkStateNotMappedError, FlinkImportRefusedError, FlinkTypeError), match=reason):
        import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location, **arguments)
    assert files_of(location) == before


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("f120-changelog-fs-heap-p1", "changelog"),
        ("f120-unaligned-p2", "unaligned"),
        ("f120-raw-p2", "raw keyed state"),
    ],
)
def test_state_that_is_not_whole(name: str, reason: str, tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    with pytest.raises(UnsupportedFlinkStateError, match=reason):
        import_flink_savepoint(laid_out(name, tmp_path), location, moved=moved(name, tmp_path))


def test_state_of_a_query_is_not_of_flink(tmp_path: Path) -> None:
    location = query(tmp_path / "query")
    with pytest.raises(FlinkImportRefusedError, match="spark-ckpt import"):
        import_flink_savepoint(location, location)


# ---- the location ----------------------------------------------------------------------------------------------------


def test_rows_of_the_query_would_be_lost(tmp_path: Path) -> None:
    families, kinds = variables_of_the_vectors("long")
    own = Section(((row(families["sum"][0], 1), row(families["sum"][1], 2)),), "sum")
    location = target(tmp_path / "query", families, kinds, rows=own).path
    with pytest.raises(FlinkImportRefusedError, match="rows of the query's own"):
        import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location)


def _without_commit(log: SparkLog, storage: LocalStorage) -> None:
    storage.delete("commits/0")


def _with_begun_batch(log: SparkLog, storage: LocalStorage) -> None:
    log.add_offsets(1, OFFSETS)


def _with_second_batch(log: SparkLog, storage: LocalStorage) -> None:
    log.add_offsets(1, OFFSETS)
    log.add_commit(1, log.commit(0))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without_commit, "has not committed any batch"),
        (_with_begun_batch, "batch 1 has begun"),
        (_with_second_batch, "has committed 2 batches"),
    ],
)
def test_another_batch_than_the_first(
    change: Callable[[SparkLog, LocalStorage], None], reason: str, tmp_path: Path
) -> None:
    location = query(tmp_path / "query")
    storage = LocalStorage(location)
    change(SparkLog(storage), storage)
    before = files_of(location)
    with pytest.raises(FlinkImportRefusedError, match=reason):
        import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location)
    assert files_of(location) == before


def test_a_second_import_is_refused(tmp_path: Path) -> None:
    location, source = query(tmp_path / "query"), laid_out(SAVEPOINT, tmp_path)
    import_flink_savepoint(source, location)
    with pytest.raises(FlinkImportRefusedError, match="has committed 2 batches"):
        import_flink_savepoint(source, location)


def test_a_rollback_leads_back(tmp_path: Path) -> None:
    """The checkpoint of the query's own batch stays, so an import can be undone and repeated."""
    location, source = query(tmp_path / "query"), laid_out(SAVEPOINT, tmp_path)
    storage = LocalStorage(location)
    first = verify(storage, everything=True).checkpoints[0].record.id
    import_flink_savepoint(source, location)
    roll_back(storage, first, force=True)
    assert table(str(location), variable="sum") == []
    import_flink_savepoint(source, location)
    assert table(str(location), variable="sum") == table(source, variable="sum")


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["add_offsets", "add_commit", "unmark"])
def test_an_interrupted_import_can_be_repeated(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location, source = query(tmp_path / "query"), laid_out(SAVEPOINT, tmp_path)
    storage = LocalStorage(location)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ImportLocation if step == "unmark" else SparkLog, step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            import_flink_savepoint(source, location)
    assert read_marker(storage) is not None
    if step == "unmark":  # the last one
        with pytest.raises(FlinkImportRefusedError, match="is complete"):
            import_flink_savepoint(source, location)
    else:
        with pytest.raises(ImportUnfinishedError):
            _start(storage)
        (finding,) = (each for each in examine(storage).findings if each.name == "unfinished operations")
        assert "an import of state from Flink has not finished" in finding.answer
        import_flink_savepoint(source, location)
    assert read_marker(storage) is None
    assert SparkLog(storage).batches(BatchLog.COMMITS) == [0, 1]
    assert table(str(location), variable="sum") == table(source, variable="sum")


def _start(storage: LocalStorage) -> None:
    """What the coordinator does at the start of batch 1."""
    store = FilesystemCompletedCheckpointStore(storage, OWNER)
    store.recover()
    open_job.starting_point(Trigger(storage.location, "query", 1, 2, (), job="run"), storage, store)


def test_rows_that_are_not_those_of_flink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong row is found before the query can see it, and its files are deleted."""
    location = query(tmp_path / "query")
    before = files_of(location)
    encode = spill.RowSpill.add

    def lose(self: spill.RowSpill, each: FamilyRows) -> None:
        kept = len(each.keys) - 1
        encode(
            self,
            replace(each, keys=_first(each.keys, kept), values=_first(each.values, kept), hashes=each.hashes[:kept]),
        )

    monkeypatch.setattr(spill.RowSpill, "add", lose)
    with pytest.raises(FlinkImportCheckError, match="8 rows were read back, 10 came from Flink"):
        import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location)
    assert files_of(location) == before


def _first(which: Any, count: int) -> Any:
    return which.take(np.arange(count))


def test_keys_that_become_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = query(tmp_path / "query")
    encode = rows.RowEncoder.encode

    def twice(self: rows.RowEncoder, batch: Any) -> Any:
        yield from encode(self, batch)
        yield from encode(self, batch)

    monkeypatch.setattr(rows.RowEncoder, "encode", twice)
    with pytest.raises(FlinkImportRowError, match="two rows of Flink have this key"):
        import_flink_savepoint(laid_out(SAVEPOINT, tmp_path), location)


def test_all_vectors_of_jobs_are_known() -> None:
    assert {*WHOLE} <= {str(vector) for vector in JOBS}
    assert checking.RowDigest(False).matches(checking.RowDigest(False))


FRACTION_KEYS: dict[str, tuple[TupleSerializer, dict[str, Any], Schema]] = {
    "beside": (TupleSerializer.of(LONG, DOUBLE), {"f0": 1, "f1": 0.0}, schema(a="long", d="double")),
    "within a struct": (
        TupleSerializer.of(LONG, TupleSerializer.of(DOUBLE)),
        {"f0": 1, "f1": {"f0": 0.0}},
        schema(a="long", s=schema(d="double")),
    ),
    "deep within": (
        TupleSerializer.of(TupleSerializer.of(TupleSerializer.of(LONG, FLOAT))),
        {"f0": {"f0": {"f0": 1, "f1": 0.0}}},
        schema(a=schema(b=schema(c="long", d="float"))),
    ),
}


@pytest.mark.parametrize("name", FRACTION_KEYS)
def test_keys_with_fractions_are_refused(name: str, tmp_path: Path) -> None:
    """Spark normalizes zeros and NaN in grouping keys, so it would not find what has other ones."""
    serializer, key, spark_key = FRACTION_KEYS[name]
    operator = FlinkOperator.of_uid("u", serializer, [FlinkState("sum", StateKind.VALUE, LONG)])
    batch = pa.RecordBatch.from_arrays(
        [pa.array([key], arrow_type(serializer).type), pa.array([1], pa.int64())], names=["key", "value"]
    )
    write_savepoint(LocalStorage(tmp_path / "savepoint"), [(operator, {"sum": iter([batch])})])
    place = target(tmp_path / "query", {"sum": (spark_key, schema(value="long"))}, {"sum": "ValueState"})
    with pytest.raises(FlinkTypeError, match="keys with fractions"):
        import_flink_savepoint(str(tmp_path / "savepoint"), str(place.path))
