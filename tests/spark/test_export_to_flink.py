"""Savepoints of queries that ran in Spark have the rows of Spark's own state reader, and real Flink reads them."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_ckpt import edit_state, erase_state, evolve, export_savepoint, read_state
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.export_savepoint import FlinkExport
from spark_ckpt.flink.export.model import StateKind
from spark_ckpt.operations.offsets import move_offsets
from spark_ckpt.state.errors import StateNotFoundError
from spark_ckpt.storage import LocalStorage
from tests.support.events import SCHEMA, events
from tests.support.flink_reader import TIMERS, as_flink_prints, rows_in_flink
from tests.support.flink_restore import NEWEST, OLDEST
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog
from tests.support.spark_version import needs_join_format, needs_rows


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: the export reads our checkpoints only."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")


@pytest.fixture(params=[OLDEST, pytest.param(NEWEST, marks=pytest.mark.flink)])
def line(request: pytest.FixtureRequest) -> str:
    """A line of Flink, which reads the savepoint."""
    return str(request.param)


def drain(runner: QueryRunner, plan: Callable[[], DataFrame], mode: str, *, all_retained: bool = True) -> None:
    """Runs a query until it has processed all input dropped so far."""
    runner.drain(plan(), BatchLog(runner.folder / "out", mode))
    runner.judge.check(runner.location, all_retained=all_retained)


def export(runner: QueryRunner, key: str, **options: Any) -> FlinkExport:
    return export_savepoint(runner.location, savepoint(runner), key=key, uid="operator", force=True, **options)


def savepoint(runner: QueryRunner) -> Path:
    return runner.folder / "savepoint"


def of_flink(runner: QueryRunner, state: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_state(savepoint(runner), variable=state).to_arrow().to_pylist()
    assert rows, "a state without rows proves nothing"
    return rows


def flink_agrees(runner: QueryRunner, exported: FlinkExport, line: str) -> None:
    """Asserts that real Flink finds every row that `read_state` finds, by the printed key and declarations alone."""
    found = rows_in_flink(exported, runner.folder / "program", line)
    for state in exported.states:
        if state.kind not in TIMERS:
            rows = read_state(savepoint(runner), variable=state.name).to_arrow().to_pylist()
            expected = [as_flink_prints(state.name, row) for row in rows]
            in_flink = [row for row in found if row[0] == state.name]
            assert Counter(in_flink) == Counter(expected)
            assert in_flink, "a state without rows proves nothing"
            if state.kind == StateKind.LIST.name:
                assert elements(in_flink) == elements(expected)


def elements(rows: list[tuple[Any, ...]]) -> dict[Any, list[Any]]:
    """Elements of the list of each key, in order."""
    lists: dict[Any, list[Any]] = {}
    for _, key, element in rows:
        lists.setdefault(key, []).append(element)
    return lists


def of_spark(spark: SparkSession, runner: QueryRunner, *columns: str, **options: object) -> Counter[tuple[Any, ...]]:
    """Rows of Spark's `statestore` data source. Times are microseconds."""
    reader = spark.read.format("statestore")
    for name, value in options.items():
        reader.option(name, str(value))
    found = Counter(tuple(row) for row in reader.load(str(runner.location)).selectExpr(*columns).collect())
    assert found
    return found


def micros(moment: datetime) -> int:
    return int((moment.timestamp() * 1_000_000) + 0.5)


def fields(row: dict[str, Any]) -> tuple[Any, ...]:
    """Fields of a row of Flink. Times are microseconds."""
    return tuple(micros(value) if isinstance(value, datetime) else value for value in [*row.values()][1:])


def test_aggregate_by_window(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """The window is two columns of the key. Some sums and all keys of a user are null."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)

    def plan() -> DataFrame:
        named = feed.stream(spark).selectExpr("ts", "value", "if(key = 'k1', null, key) AS user")
        frame = named.withWatermark("ts", "10 minutes").groupBy(sf.window("ts", "7 seconds"), "user")
        only_even = sf.expr("if(value % 2 = 0, value, null)")
        return frame.agg(sf.count("*"), sf.sum(only_even), sf.min("value"), sf.max("value"))

    drain(runner, plan, "update")
    exported = export(runner, "rowdata", sql_aggregate=True)
    assert [state.note for state in exported.states] == ["columns: count, sum, min, max"]
    key = ("unix_micros(key.window.start)", "unix_micros(key.window.end)", "key.user")
    expected = of_spark(spark, runner, *key, "value.count", "value.sum", "value.min", "value.max")
    found = Counter((*fields(row["key"]), *fields(row["value"])) for row in of_flink(runner, "accState"))
    assert found == expected
    assert any(row[2] is None for row in found)
    assert any(row[4] is None for row in found)


@pytest.mark.long
def test_an_average_is_no_accumulator_of_sql(
    line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random
) -> None:
    feed = runner.feed("events", SCHEMA)
    feed.drop(events(rng, 1)[0])
    drain(runner, lambda: feed.stream(spark).groupBy("key").agg(sf.stddev("value")), "update")
    with pytest.raises(UnsupportedForFlinkError, match="none of COUNT, SUM, MIN and MAX"):
        export(runner, "rowdata", sql_aggregate=True)
    exported = export(runner, "string")
    assert len(exported.states) == 1
    flink_agrees(runner, exported, line)


def test_one_of_two_operators(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    """Each goes into a savepoint of its own, under the id that the job gives to its uid."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 minutes").dropDuplicates(["key", "ts"])
        return frame.groupBy("key").agg(sf.count("*"))

    drain(runner, plan, "update")
    with pytest.raises(StateNotFoundError, match=r"choose an operator; available: 0 \(.*\), 1 \(.*\)"):
        export(runner, "string")
    for number, (key, state) in enumerate((("string", "aggregate"), ("rowdata", "seen"))):
        location = tmp_path / str(number)
        exported = export_savepoint(
            runner.location, location, operator=number, key=key, uid=f"uid-{number}", force=True
        )
        rows = read_state(location).to_arrow().to_pylist()
        assert [each.name for each in exported.states] == [state]
        expected = len({row[1] for row in feed.rows()}) if number == 0 else len({row[:2] for row in feed.rows()})
        assert len(rows) == expected


class Keeping(StatefulProcessor):
    """Keeps its input in each kind of state and in timers; some values have a time to live, one of them a short one."""

    ttl_ms: tuple[int | None, int | None] = 3_600_000, 1

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "n long", ttlDurationMs=self.ttl_ms[0])
        self.short = handle.getListState("short", "n long", ttlDurationMs=self.ttl_ms[1])
        self.listed = handle.getListState("listed", "value long, label string")
        self.mapped = handle.getMapState("mapped", "digit long", "n long")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        values = [row.value for row in rows]
        self.count.update(((self.count.get() or (0,))[0] + len(values),))
        for value in values:
            self.listed.appendValue((value, None if value % 5 == 0 else key[0] * (value % 5)))
            self.short.appendValue((value,))
            self.mapped.updateValue((value % 10,), (value,))
        self.handle.registerTimer(10**15 + values[0])
        yield Row(key=key[0])

    def close(self) -> None:
        return


class KeepingInEventTime(Keeping):
    """Without times to live, which Spark has in processing time only."""

    ttl_ms = None, None


@needs_rows
@pytest.mark.parametrize("mode", [pytest.param("processingTime", marks=pytest.mark.long), "eventTime"])
def test_transform_with_state(
    mode: str, line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random
) -> None:
    """Values, lists, maps and timers, one to one."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 4):
        feed.drop(batch)
    sink = BatchLog(runner.folder / "out", "update")

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 minutes").groupBy("key")
        processor = KeepingInEventTime() if mode == "eventTime" else Keeping()
        return frame.transformWithState(processor, "key string", "update", mode)

    runner.drain(plan(), sink, lambda: sum(map(bool, sink.batches().values())) == len(feed.batches))
    exported = export(runner, "string")
    kinds = {state.name: state.kind for state in exported.states}
    timers = f"_timer_state/{'event' if mode == 'eventTime' else 'processing'}_user-timers"
    assert set(kinds) == {"count", "short", "listed", "mapped", timers}
    with_ttl = mode == "processingTime"
    path = "value.value.n" if with_ttl else "value.n"
    values = of_spark(spark, runner, "key.key", path, stateVarName="count")
    assert Counter((row["key"], row["value"]) for row in of_flink(runner, "count")) == values
    path = "list_element.value.n" if with_ttl else "list_element.n"
    short = of_spark(spark, runner, "key.key", path, stateVarName="short")
    assert Counter((row["key"], row["list_element"]) for row in of_flink(runner, "short")) == short
    listed = of_spark(spark, runner, "key.key", "list_element.value", "list_element.label", stateVarName="listed")
    assert Counter((row["key"], *fields(row["list_element"])) for row in of_flink(runner, "listed")) == listed
    mapped = of_spark(spark, runner, "key.key", "user_map_key.digit", "user_map_value.n", stateVarName="mapped")
    entries = of_flink(runner, "mapped")
    assert Counter((row["key"], row["user_map_key"], row["user_map_value"]) for row in entries) == mapped
    registered = of_spark(spark, runner, "key.key", "expiration_timestamp_ms", readRegisteredTimers=True)
    assert Counter((row["key"], row["expiration_timestamp_ms"]) for row in of_flink(runner, timers)) == registered
    notes = {state.name: state.note for state in exported.states}
    assert all(("time to live" in notes[name]) == with_ttl for name in ("count", "short"))
    assert "time to live" not in notes["listed"]
    flink_agrees(runner, exported, line)


@pytest.mark.long
@pytest.mark.parametrize("within", [False, True], ids=["for-ever", "within-watermark"])
def test_deduplication(within: bool, line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 minutes")
        return frame.dropDuplicatesWithinWatermark(["key"]) if within else frame.dropDuplicates(["key", "ts"])

    drain(runner, plan, "append")
    exported = export(runner, "string" if within else "rowdata")
    if within:
        found = Counter((row["key"], row["value"]) for row in of_flink(runner, "expiresAtMicros"))
        assert found == of_spark(spark, runner, "key.key", "value.expiresAtMicros")
    else:
        rows = of_flink(runner, "seen")
        assert all(row["value"] is True for row in rows)
        # The order of the columns is Spark's.
        found_keys = Counter(tuple(sorted(map(str, fields(row["key"])))) for row in rows)
        spark_keys = of_spark(spark, runner, "key.key", "unix_micros(key.ts)")
        assert found_keys == Counter(tuple(sorted(map(str, row))) for row in spark_keys.elements())
    flink_agrees(runner, exported, line)


@pytest.mark.long
def test_session_windows(line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 minutes")
        return frame.groupBy(sf.session_window("ts", "5 seconds"), "key").agg(sf.sum("value").alias("total"))

    drain(runner, plan, "append")
    exported = export(runner, "string")
    (state,) = exported.states
    names = state.note.removeprefix("columns: ").split(", ")
    columns = [f"unix_micros(value.{name})" if name.startswith("session_window") else f"value.{name}" for name in names]
    expected = of_spark(spark, runner, "key.key", "unix_micros(key.sessionStartTime)", *columns)
    found: Counter[tuple[Any, ...]] = Counter()
    for row in of_flink(runner, "sessions"):
        start = row["user_map_key"]
        at = start["seconds"] * 1_000_000 + start["nanos"] // 1000
        found.update([(row["key"], at, *fields(row["user_map_value"]))])
    assert found == expected
    flink_agrees(runner, exported, line)


def test_group_state(line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 2):
        feed.drop(batch)

    def running(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        count, _ = state.getOption or (0, "")
        count += sum(map(len, frames))
        state.update((count, key[0] * 2))
        if count % 2:
            state.setTimeoutTimestamp(10**14 + count)
        yield pd.DataFrame({"key": [key[0]], "n": [count]})

    def plan() -> DataFrame:
        grouped = feed.stream(spark).withWatermark("ts", "10 minutes").groupBy("key")
        timeout = GroupStateTimeout.EventTimeTimeout
        return grouped.applyInPandasWithState(running, "key string, n long", "n long, twice string", "update", timeout)

    drain(runner, plan, "update")
    exported = export(runner, "string")
    columns = ("value.groupState.n", "value.groupState.twice", "value.timeoutTimestamp")
    expected = of_spark(spark, runner, "key.key", *columns)
    found = Counter((row["key"], *fields(row["value"])) for row in of_flink(runner, "groupState"))
    assert found == Counter(row[:3] for row in expected.elements())
    timeouts = Counter((row["key"], row["value"]) for row in of_flink(runner, "timeoutTimestamp"))
    assert timeouts == Counter((row[0], row[3]) for row in expected.elements() if row[3] != -1)
    flink_agrees(runner, exported, line)


@pytest.mark.parametrize("version", [2, pytest.param(4, marks=[pytest.mark.long, needs_join_format(4)])])
def test_join(version: int, line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """Format 4 has lists, which Spark's own reader cannot read by side: all input rows are there."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", str(version))
    if version == 4:
        spark.conf.set("spark.sql.streaming.join.stateFormatV4.enabled", "true")
    left, right = runner.feed("left", SCHEMA), runner.feed("right", SCHEMA)
    for one, other in zip(events(rng, 3), events(rng, 3), strict=True):
        left.drop(one)
        right.drop(other)

    def plan() -> DataFrame:
        one, other = left.stream(spark).alias("l"), right.stream(spark).alias("r")
        return one.join(other, "key").select("key", "l.value", "r.value")

    drain(runner, plan, "append")
    exported = export(runner, "string")
    for state, feed in zip(exported.states, (left, right), strict=True):
        rows = of_flink(runner, state.name)
        names = state.note.removeprefix("columns: ").split(", ")
        at = names.index("value")
        found = Counter((row["key"], fields(row["list_element"])[at]) for row in rows)
        assert found == Counter((row[1], row[2]) for row in feed.rows())
        assert state.rows == len({row["key"] for row in rows}) < len(rows)
    flink_agrees(runner, exported, line)


def totals(runner: QueryRunner) -> dict[str, tuple[int, ...]]:
    rows = read_state(runner.location).to_arrow().to_pylist()
    return {each["key"]["key"]: tuple(each["value"].values()) for each in rows}


@pytest.mark.long
def test_after_edits_moved_offsets_and_an_evolution(
    line: str, spark: SparkSession, runner: QueryRunner, rng: random.Random
) -> None:
    """Real Flink finds the state that each of them leaves, whichever has written its file."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)

    def counts(*more: Any) -> DataFrame:
        return feed.stream(spark).groupBy("key").agg(sf.count("*"), *more)

    def exported() -> None:
        for folder in (savepoint(runner), runner.folder / "program"):
            shutil.rmtree(folder, ignore_errors=True)
        flink_agrees(runner, export(runner, "string"), line)
        found = {row["key"]: fields(row["value"]) for row in of_flink(runner, "aggregate")}
        assert found == totals(runner)

    drain(runner, counts, "update")
    before = totals(runner)
    changed, deleted, erased = sorted(before)[:3]
    value = {read_state(runner.location).schema.field("value").type[0].name: 1000}
    edit_state(
        runner.location,
        pa.Table.from_pylist([{"key": {"key": changed}, "value": value}]),
        pa.Table.from_pylist([{"key": {"key": deleted}}]),
        force=True,
    )
    erase_state(runner.location, pa.table({"key": [erased]}), purge_files=True, force=True)
    assert totals(runner)[changed] == (1000,)
    move_offsets(LocalStorage(runner.location), {"0": '{"logOffset":-1}'}, force=True)
    exported()
    drain(runner, counts, "update", all_retained=False)
    expected = Counter({key: number for key, (number,) in before.items()})
    again = {**expected, changed: 1000, deleted: 0, erased: 0}
    assert totals(runner) == {key: (again[key] + number,) for key, number in expected.items()}
    evolve(counts(sf.max("value")), runner.location, output_mode="update")
    feed.drop(events(rng, 1)[0])
    drain(runner, lambda: counts(sf.max("value")), "update", all_retained=False)
    exported()
