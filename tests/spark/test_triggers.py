"""Triggers, and several queries in one driver."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.checkpoints import CheckpointJudge, committed_batches, completed_checkpoints
from tests.support.events import SCHEMA, end, events, without_end
from tests.support.formats import mainly_with_ids
from tests.support.provider import ProviderUnderTest
from tests.support.real_time import RealTimeStream
from tests.support.runner import PATIENCE, QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows
from tests.support.spark_version import MINOR, order, since


def by_key(frame: DataFrame) -> DataFrame:
    """A running count and sum per key."""
    return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def by_window(frame: DataFrame) -> DataFrame:
    """Closed windows."""
    counted = frame.withWatermark("ts", "10 seconds").groupBy(sf.window("ts", "10 seconds"), "key").agg(sf.sum("value"))
    return counted.select("window.start", "key", "sum(value)")


@mainly_with_ids
def test_available_now(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Each run processes the available input in several batches and ends; the next continues from its state."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "append")
    batches = [*events(rng), end()]
    for begin in (0, 3, 6):
        for batch in batches[begin : begin + 3]:
            feed.drop(batch)
        query = runner.start(by_window(feed.stream(spark)), sink, lambda writer: writer.trigger(availableNow=True))
        assert query.awaitTermination(int(PATIENCE)), "the query did not end by itself"
        assert query.exception() is None
    expected = [tuple(row) for row in by_window(feed.table(spark)).collect()]
    assert_same_rows(runner.finish(sink), without_end(expected))


def test_processing_time(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """Input that arrives while the query runs, at intervals."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    batches = events(rng, 6)
    for half in (batches[:3], batches[3:]):
        query = runner.start(
            by_key(feed.stream(spark)), sink, lambda writer: writer.trigger(processingTime="200 milliseconds")
        )
        for batch in half:
            feed.drop(batch)
            runner.await_(lambda: len(committed_batches(runner.location)) >= len(feed.batches), query=query)
        query.stop()
    assert_same_rows(runner.finish(sink), [tuple(row) for row in by_key(feed.table(spark)).collect()])


def test_several_queries_in_one_driver(
    spark: SparkSession, rng: random.Random, tmp_path: Path, judge: CheckpointJudge
) -> None:
    """Three concurrent queries, one of them restarted while the others continue: no state is mixed up."""
    plans: dict[str, tuple[Callable[[DataFrame], DataFrame], str, int]] = {
        "running": (by_key, "update", 1),
        "windows": (by_window, "append", 2),
        "distinct": (lambda frame: frame.select("key", "value").dropDuplicates(), "append", 2),
    }
    batches = [*events(rng, 6), end()]
    runners = {name: QueryRunner(spark, tmp_path / name, judge) for name in plans}
    feeds = {name: runner.feed("events", SCHEMA) for name, runner in runners.items()}
    sinks = {name: BatchLog(tmp_path / name / "out", mode, keys) for name, (_, mode, keys) in plans.items()}

    def start(name: str) -> StreamingQuery:
        return runners[name].start(plans[name][0](feeds[name].stream(spark)), sinks[name])

    queries = {name: start(name) for name in plans}
    for number, batch in enumerate(batches):
        for feed in feeds.values():
            feed.drop(batch)
        if number % 2:
            queries["running"].stop()
            queries["running"] = start("running")
    for query in queries.values():
        query.processAllAvailable()
        query.stop()
    for name, (plan, _, _) in plans.items():
        expected = [tuple(row) for row in plan(feeds[name].table(spark)).collect()]
        assert_same_rows(without_end(runners[name].finish(sinks[name])), without_end(expected))


@since("4.2", "real-time mode in Python")
@pytest.mark.skipif(order(MINOR) >= order("4.3"), reason="since Spark 4.3, test_real_time_mode.py has the refusals")
def test_real_time_mode_is_refused(
    runner: QueryRunner, spark: SparkSession, provider: ProviderUnderTest, tmp_path: Path
) -> None:
    """Rejected even where Spark permits it at the user's risk; with another trigger the query continues as before."""
    if not provider.is_ours:
        pytest.skip("about our checkpoints")
    spark.conf.set("spark.sql.streaming.realTimeMode.allowlistCheck", "false")
    stream = RealTimeStream(spark)
    sink = BatchLog(tmp_path / "out", "update")
    counts = stream.frame().groupBy("value").count()
    stream.add(1, 2, 1)
    runner.drain(counts, sink)
    before = completed_checkpoints(runner.location)
    stream.add(1)
    writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(runner.location))
    writer = writer.trigger(realTime="5 seconds")  # type: ignore[call-overload]  # no overload of PySpark's has it
    with pytest.raises(StreamingQueryException, match=r"\[SessionConfigError\] .* real-time mode"):
        writer.start().awaitTermination(int(PATIENCE))
    assert completed_checkpoints(runner.location) == before
    runner.drain(counts, sink)
    assert_same_rows(runner.finish(sink), [(1, 3), (2, 1)])
