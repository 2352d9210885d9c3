"""`read_state` returns the same as Spark's own state reader, for every stateful operator and every type."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from spark_ckpt import read_state
from spark_ckpt.state.export import write_delta
from spark_ckpt.state.views import Side
from tests.support.delta import needs_delta
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog
from tests.support.spark_version import needs_join_format, needs_rows
from tests.support.state import assert_read_as_spark_does, assert_rows_as_spark_has

TYPES = {
    "nothing": "null",
    "flag": "value > 0",
    "tiny": "cast(value % 100 as byte)",
    "small": "cast(value as short)",
    "number": "cast(value as int)",
    "big": "value * 1000000007",
    "ratio": "cast(value / 7 as float)",
    "share": "value / 7",
    "price": "cast(value as decimal(9, 2)) / 4",
    "amount": "cast(value as decimal(38, 10)) * -123456789012345.0001",
    "day": "date_add(date'2024-02-28', cast(value as int))",
    "moment": "ts",
    "local": "cast(ts as timestamp_ntz)",
    "text": "repeat('ß-', cast(abs(value) % 9 as int))",
    "bytes": "cast(key as binary)",
    "pause": "make_dt_interval(1, 2, 3, value)",
    "parts": "array(value, null, value + 1)",
    "names": "array(key, null, repeat(key, 5))",
    "points": "array(named_struct('x', value, 'y', key), null)",
    "table": "map(key, array(value), 'none', null)",
    "inner": "if(value > 0, named_struct('a', key, 'b', named_struct('c', value, 'd', array(key))), null)",
}
"""One column per type that PySpark can represent; about half of the values are null, those of odd numbers."""


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: `read_state` reads our checkpoints only."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")


def drain(runner: QueryRunner, plan: Callable[[], DataFrame], mode: str) -> None:
    """Runs a query until it has processed all input dropped so far."""
    sink = BatchLog(runner.folder / "out", mode)
    runner.drain(plan(), sink)
    runner.judge.check(runner.location)


def test_aggregate_of_every_type(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    """The newest and an earlier checkpoint, with nulls and stacked deltas, read as Spark reads them.

    Spark also reads the Delta table that is made of the state without Spark.
    """
    feed = runner.feed("events", SCHEMA)

    def plan() -> DataFrame:
        columns = [sf.expr(f"last(if(value % 2 = 0, {kind}, null))").alias(name) for name, kind in TYPES.items()]
        return feed.stream(spark).groupBy("key").agg(*columns)

    for batch in events(rng, 4, keys=40):
        feed.drop(batch)
    drain(runner, plan, "update")
    table = assert_read_as_spark_does(spark, runner.location)
    assert all(column.null_count < len(column) for column in table["value"].combine_chunks().flatten()[2::2])
    earlier = assert_read_as_spark_does(spark, runner.location, {"batchId": 0})
    assert earlier.num_rows < table.num_rows


@needs_delta
@pytest.mark.parametrize(
    "zone", [pytest.param("UTC", id="plain", marks=pytest.mark.long), pytest.param(None, id="with-a-feature")]
)
def test_delta_table(zone: str | None, spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads a Delta table that was written without Spark, and appends to it."""
    rows = pa.table(
        {
            "key": pa.array(
                [{"user": "a", "at": 0}, None], pa.struct([("user", pa.string()), ("at", pa.timestamp("us", zone))])
            ),
            "pause": pa.array([5, None], pa.duration("us")),
            "nothing": pa.nulls(2),
            "price": pa.array([None, 15], pa.decimal128(38, 2)),
            "table": pa.array([[("a", [1])], None], pa.map_(pa.string(), pa.list_(pa.int64()))),
        }
    )
    target = str(tmp_path / "table")
    assert write_delta(rows.schema, rows.to_batches(), target) == 2
    assert_rows_as_spark_has(pq.read_table(target), spark.read.format("delta").load(target))
    spark.read.format("delta").load(target).write.format("delta").mode("append").save(target)
    assert spark.read.format("delta").load(target).count() == 4


def test_types_that_pyspark_cannot_show(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    feed = runner.feed("events", SCHEMA)

    def plan() -> DataFrame:
        columns = {
            "years": "make_ym_interval(1, cast(value as int))",
            "mixed": "make_interval(1, 2, 3, 4, 5, 6, value / 1000)",
            "json": "parse_json(concat('{\"a\": ', value, '}'))",
        }
        aggregates = [sf.expr(f"cast(last({kind}) as string)").alias(name) for name, kind in columns.items()]
        return feed.stream(spark).groupBy("key").agg(*aggregates, sf.last("value").alias("number"))

    for batch in events(rng, 2):
        feed.drop(batch)
    drain(runner, plan, "update")
    rows = read_state(str(runner.location)).to_arrow()["value"].combine_chunks().flatten()
    assert rows[0].type == pa.int32()
    numbers = rows[6].to_pylist()
    assert len(set(numbers)) > 1
    assert rows[0].to_pylist() == [12 + number for number in numbers]
    since = (5 * 3600 + 6 * 60) * 1_000_000
    expected = [{"months": 14, "days": 25, "microseconds": since + number * 1000} for number in numbers]
    assert rows[2].to_pylist() == expected
    assert all(b"a" in variant["metadata"] for variant in rows[4].to_pylist())


@pytest.mark.parametrize("kind", ["dropDuplicates", "dropDuplicatesWithinWatermark"])
def test_deduplication(kind: str, spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 4):
        feed.drop(batch)

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 minutes")
        return (
            frame.dropDuplicates(["key", "ts"])
            if kind == "dropDuplicates"
            else frame.dropDuplicatesWithinWatermark(["key"])
        )

    drain(runner, plan, "append")
    assert_read_as_spark_does(spark, runner.location)


@pytest.mark.parametrize(
    "version", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(3, marks=needs_join_format(3))]
)
def test_join(version: int, spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """Both sides can be read, and each store or variable by its name."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", version)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    left, right = runner.feed("left", SCHEMA), runner.feed("right", SCHEMA)
    for one, other in zip(events(rng, 3), events(rng, 3), strict=True):
        left.drop(one)
        right.drop(other)

    def plan() -> DataFrame:
        one, other = (
            feed.stream(spark).withWatermark("ts", "10 seconds").toDF(f"{name}_ts", "key", f"{name}_value")
            for name, feed in (("left", left), ("right", right))
        )
        near = sf.expr("right_ts between left_ts - interval 10 seconds and left_ts + interval 10 seconds")
        return one.join(other.withColumnRenamed("key", "other"), near & sf.expr("key = other"))

    system = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("spark.testing", "true")  # required by Spark to start a query in format 1
    try:
        drain(runner, plan, "append")
    finally:
        system.clearProperty("spark.testing")
    for side in ("left", "right"):
        assert_read_as_spark_does(spark, runner.location, {"joinSide": side}, side=side)
        if version != 3:
            for name in (f"{side}-keyToNumValues", f"{side}-keyWithIndexToValue"):
                assert_read_as_spark_does(spark, runner.location, {"storeName": name}, store=name)
        else:
            name = f"{side}-keyToNumValues"
            assert_read_as_spark_does(spark, runner.location, {"stateVarName": name}, variable=name)


@needs_join_format(4)
def test_join_in_lists(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """Format 4, which Spark's own reader cannot read by side yet: all input rows are found, as none has expired."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", "4")
    spark.conf.set("spark.sql.streaming.join.stateFormatV4.enabled", "true")
    left, right = runner.feed("left", SCHEMA), runner.feed("right", SCHEMA)
    for one, other in zip(events(rng, 3), events(rng, 3), strict=True):
        left.drop(one)
        right.drop(other)

    def plan() -> DataFrame:
        one, other = left.stream(spark).alias("l"), right.stream(spark).alias("r")
        return one.join(other, "key").select("key", "l.value", "r.value")

    drain(runner, plan, "append")
    sides: tuple[tuple[Side, Feed], ...] = (("left", left), ("right", right))
    for side, feed in sides:
        table = read_state(str(runner.location), side=side).to_arrow()
        assert table["key"].type.names == ["field0"]
        values = [(row["key"], row["value"]) for row in table["value"].to_pylist()]
        assert sorted(values) == sorted(row[1:] for row in feed.rows())


def test_session_windows(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 4):
        feed.drop(batch)

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "30 seconds")
        return frame.groupBy(sf.session_window("ts", "5 seconds"), "key").agg(sf.sum("value").alias("total"))

    drain(runner, plan, "append")
    assert_read_as_spark_does(spark, runner.location)


def test_group_state(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """flatMapGroupsWithState, in the form of applyInPandasWithState."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 3):
        feed.drop(batch)

    def running(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        (count,) = state.getOption or (0,)
        count += sum(map(len, frames))
        state.update((count,))
        state.setTimeoutDuration(3_600_000)
        yield pd.DataFrame({"key": [key[0]], "n": [count]})

    def plan() -> DataFrame:
        grouped = feed.stream(spark).groupBy("key")
        timeout = GroupStateTimeout.ProcessingTimeTimeout
        return grouped.applyInPandasWithState(running, "key string, n long", "n long", "update", timeout)

    sink = BatchLog(runner.folder / "out", "update")
    query = runner.start(plan(), sink)
    try:
        runner.await_(lambda: len([rows for rows in sink.batches().values() if rows]) == 3, query=query)
    finally:
        query.stop()
    assert_read_as_spark_does(spark, runner.location)


def test_limit(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """The key has no fields."""
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, 2):
        feed.drop(batch)
    drain(runner, lambda: feed.stream(spark).limit(50), "append")
    table = assert_read_as_spark_does(spark, runner.location)
    assert table.num_rows == 1


class Keeping(StatefulProcessor):
    """Stores its input in each kind of state, with and without a time to live, and in timers."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.count = handle.getValueState("count", "n long, label string", ttlDurationMs=3_600_000)
        self.listed = handle.getListState("listed", "value long, label string")
        self.mapped = handle.getMapState("mapped", "digit long", "n long, label string")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        values = [row.value for row in rows]
        self.count.update(((self.count.get() or (0,))[0] + len(values), key[0]))
        if values[0] % 3 == 0:
            self.listed.put([(values[0], key[0] * 3)])
        else:
            for value in values:
                self.listed.appendValue((value, key[0] * (value % 5)))
        for value in values:
            self.mapped.updateValue((value % 10,), (value, None if value % 2 else key[0]))
        if len(values) > 3:
            self.mapped.removeKey((values[0] % 10,))
        self.handle.registerTimer(10**15 + values[0])
        yield Row(key=key[0])

    def close(self) -> None:
        return


@needs_rows
def test_transform_with_state(spark: SparkSession, runner: QueryRunner, rng: random.Random) -> None:
    """Values, lists both appended to and replaced, maps, and timers are read as Spark reads them."""
    feed = runner.feed("events", SCHEMA)
    batches = events(rng, 5)
    sink = BatchLog(runner.folder / "out", "update")
    for part in (batches[:3], batches[3:]):
        for batch in part:
            feed.drop(batch)
        frame = (
            feed.stream(spark).groupBy("key").transformWithState(Keeping(), "key string", "update", "processingTime")
        )
        runner.drain(frame, sink, lambda: sum(map(bool, sink.batches().values())) == len(feed.batches))
    for variable in ("count", "listed", "mapped"):
        assert_read_as_spark_does(spark, runner.location, {"stateVarName": variable}, variable=variable)
    timers = "$procTimers_keyToTimestamp"
    assert_read_as_spark_does(spark, runner.location, {"readRegisteredTimers": True}, variable=timers)
