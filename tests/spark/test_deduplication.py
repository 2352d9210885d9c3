"""De-duplication, restarted in the middle, emits each row once."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.support.events import END, SCHEMA, end, events, moment, without_end
from tests.support.feeds import at
from tests.support.formats import mainly_with_ids
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, ParquetSink, Rows, assert_same_rows
from tests.support.spark_version import since

RETURNS_AFTER = 6
"""Number of batches after which a key is new again: its 30 seconds are over and it has left the state."""


def distinct(rows: Rows) -> Rows:
    """Each row once, without the row that only advances the watermark."""
    return without_end(list(dict.fromkeys(rows)))


@mainly_with_ids
def test_drop_duplicates_for_ever(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Without a watermark, a key is emitted once in the lifetime of the query."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "append")
    batches = events(rng, keys=60)
    rows = runner.run(lambda: feed.stream(spark).select("key").dropDuplicates(["key"]), sink, {feed: batches})
    assert_same_rows(rows, distinct([(row[1],) for row in feed.rows()]))


@pytest.mark.parametrize(
    "evicted_per_row",
    [0, pytest.param(2, marks=[pytest.mark.core, since("4.3", "incremental eviction")])],
)
def test_drop_duplicates_under_a_watermark(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, evicted_per_row: int
) -> None:
    """With the event time among the keys, old keys leave the state and no duplicate is emitted.

    With incremental eviction, keys are removed by a scan that is under way while others are put.
    """
    spark.conf.set("spark.sql.streaming.statefulOperator.incrementalCleanupFactor", evicted_per_row)
    feed = runner.feed("events", SCHEMA)
    batches = events(rng, keys=60)
    for earlier, later in pairwise(batches):
        later += [max(earlier), *rng.choices(later, k=5)]

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "10 seconds")
        return frame.dropDuplicates(["ts", "key"]).select("ts", "key")

    rows = runner.run(plan, ParquetSink(tmp_path / "out"), {feed: [*batches, end()]})
    assert_same_rows(without_end(rows), distinct([row[:2] for row in feed.rows()]))
    left = spark.read.format("statestore").load(str(runner.location)).select("key.key").collect()
    if evicted_per_row:
        assert END in [row["key"] for row in left]  # Spark 4.3.0 leaves some rows, with its own providers too
        assert len(left) < len(set(feed.rows())) / 3
    else:
        assert [row["key"] for row in left] == [END]


@mainly_with_ids
def test_drop_duplicates_within_watermark(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """A key is emitted again only once the watermark has passed its first row by the delay.

    Each key arrives in two batches, the second time as a duplicate, and again five batches later, long expired.
    """
    feed = runner.feed("events", SCHEMA)
    batches: list[Rows] = []
    expected: Rows = []
    for batch in range(8):
        rows: Rows = [(at(moment(rng, batch)), f"only-{batch}-{number}", batch) for number in range(20)]
        expected += rows
        for phase in range(RETURNS_AFTER):
            since = (batch - phase) % RETURNS_AFTER
            returning: Rows = [(at(moment(rng, batch)), f"again-{phase}-{number}", batch) for number in range(4)]
            if since in (0, 1) and batch >= phase:
                rows = rows + returning
            if since == 0 and batch >= phase:
                expected += returning
        batches.append(rng.sample(rows, len(rows)))

    def plan() -> DataFrame:
        frame = feed.stream(spark).withWatermark("ts", "30 seconds")
        return frame.dropDuplicatesWithinWatermark(["key"]).select("ts", "key", "value")

    rows = runner.run(plan, BatchLog(tmp_path / "out", "append"), {feed: batches})
    assert_same_rows(rows, expected)
