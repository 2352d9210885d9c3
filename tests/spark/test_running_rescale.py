"""Queries that change their number of partitions while they run produce the batch answer, whatever their operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.location.rescale_request import (
    RescaleAnswer,
    RescaleRequest,
    create_request,
    delete_request,
    read_request,
)
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.spark.processors import COUNTS, RememberingRows, remembered
from tests.support.checkpoints import committed_batches
from tests.support.events import SCHEMA, end, events, without_end
from tests.support.feeds import Feed, Row
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, Sink, assert_same_rows
from tests.support.spark_version import needs_rows

CHAIN = (6, 4, 5, 1, 3)
"""Queries start with 3 partitions."""

MOST_BATCHES = 200


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: only our checkpoints support this rescale."""
    if not provider.is_ours:
        pytest.skip("only our provider's checkpoints can be rescaled by metadata")


def answers(
    runner: QueryRunner,
    plan: Callable[[], DataFrame],
    sink: Sink,
    feed: Feed,
    batches: Iterator[Sequence[Row]],
    chain: Sequence[int] = CHAIN,
) -> list[RescaleAnswer]:
    """Runs one query without a stop, and asks for one number after another."""
    storage, found = LocalStorage(runner.location), []
    query = runner.start(plan(), sink)
    try:
        feed.drop(next(batches))
        query.processAllAvailable()
        for number in chain:
            assert create_request(storage, RescaleRequest(number, 0))
            while (asked := read_request(storage)) is not None and asked.answer is None:
                feed.drop(next(batches))
                query.processAllAvailable()
            assert asked is not None
            assert asked.answer is not None
            found.append(asked.answer)
            delete_request(storage)
        feed.drop(next(batches))
        query.processAllAvailable()
    finally:
        query.stop()
    return found


def numbers(location: Path) -> list[int | None]:
    """The numbers of partitions in the offset log, without repetitions."""
    log = SparkLog(LocalStorage(location))
    there = [log.offsets(batch).shuffle_partitions for batch in committed_batches(location)]
    return [number for i, number in enumerate(there) if number != ([None, *there])[i]]


def by_key(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))


def seen(frame: DataFrame) -> DataFrame:
    return frame.select("key", "value").dropDuplicates(["key", "value"])


def sessions(frame: DataFrame) -> DataFrame:
    window = sf.session_window("ts", "5 seconds")
    grouped = frame.withWatermark("ts", "10 seconds").groupBy(window, "key").agg(sf.count("*").alias("n"))
    return grouped.select("session_window.start", "session_window.end", "key", "n")


def pairs(frame: DataFrame) -> DataFrame:
    """A join of the stream with itself."""
    left = frame.where("value >= 0").selectExpr("ts AS left_ts", "key AS left_key", "value AS a")
    right = frame.where("value < 0").selectExpr("ts AS right_ts", "key AS right_key", "value AS b")
    bounds = "left_key = right_key AND right_ts BETWEEN left_ts AND left_ts + INTERVAL 15 SECONDS"
    return left.withWatermark("left_ts", "10 seconds").join(
        right.withWatermark("right_ts", "10 seconds"), sf.expr(bounds)
    )


@pytest.mark.parametrize(
    ("plan", "mode"),
    [
        pytest.param(by_key, "update", marks=pytest.mark.core, id="aggregate"),
        pytest.param(seen, "append", id="deduplication"),
        pytest.param(sessions, "append", id="session-windows"),
        pytest.param(pairs, "append", id="join"),
    ],
)
def test_answers(
    plan: Callable[[DataFrame], DataFrame],
    mode: str,
    spark: SparkSession,
    runner: QueryRunner,
    rng: random.Random,
    tmp_path: Path,
    checkpoint_format: None,
) -> None:
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", mode)
    batches = events(rng, MOST_BATCHES, keys=60)
    found = answers(runner, lambda: plan(feed.stream(spark)), sink, feed, iter(batches))
    assert [answer.before for answer in found] == [3, *CHAIN[:-1]]
    assert numbers(runner.location) == [3, *CHAIN]
    feed.drop(end())
    runner.drain(plan(feed.stream(spark)), sink)
    rows: Rows = without_end(runner.finish(sink))
    assert_same_rows(rows, without_end([tuple(row) for row in plan(feed.table(spark)).collect()]))


@needs_rows
def test_state_variables(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """A value, a list and a map of transformWithState, whose metadata names the number of partitions."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")

    def plan() -> DataFrame:
        return feed.stream(spark).groupBy("key").transformWithState(RememberingRows(), COUNTS, "update", "none")

    answers(runner, plan, sink, feed, iter(events(rng, MOST_BATCHES, keys=30)), (5, 2))
    known = remembered([[tuple(row) for row in batch] for batch in feed.batches])
    expected: Rows = [
        (key, count, str(sorted(listed)), str(sorted(mapped.items()))) for key, (count, listed, mapped) in known.items()
    ]
    assert_same_rows(runner.finish(sink), expected)
    metadata = spark.read.format("state-metadata").load(str(runner.location)).collect()
    assert [row.numPartitions for row in metadata] == [2]


def test_a_refusal_leaves_the_query_as_it_is(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    batches = iter(events(rng, MOST_BATCHES, keys=60))
    found = answers(runner, lambda: by_key(feed.stream(spark)), sink, feed, batches, (4000, 3, 4))
    assert found[0].refused is not None
    assert "1536 key groups" in found[0].refused
    assert found[1] == RescaleAnswer(before=3)
    assert found[2].before == 3
    assert numbers(runner.location) == [3, 4]
    assert_same_rows(runner.finish(sink), [tuple(row) for row in by_key(feed.table(spark)).collect()])
