"""Several stateful operators in one query, each with its own stores, restarted in the middle."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.events import SCHEMA, end, events, without_end
from tests.support.formats import mainly_with_ids
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows


@mainly_with_ids
def test_aggregation_after_join(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """A join within five seconds, followed by a count of its matches per window."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    left, right = runner.feed("left", SCHEMA), runner.feed("right", SCHEMA)

    def plan(one: DataFrame, other: DataFrame) -> DataFrame:
        one = one.withWatermark("ts", "10 seconds").alias("one")
        other = other.withWatermark("ts", "10 seconds").alias("other")
        matches = one.join(
            other,
            sf.expr("one.key = other.key AND other.ts BETWEEN one.ts AND one.ts + INTERVAL 5 SECONDS"),
        ).select(sf.col("one.ts").alias("ts"), sf.col("one.key").alias("key"), sf.col("other.value").alias("value"))
        counted = matches.groupBy(sf.window("ts", "20 seconds"), "key").agg(sf.count("*"), sf.sum("value"))
        return counted.select("window.start", "key", "count(1)", "sum(value)")

    rows = runner.run(
        lambda: plan(left.stream(spark), right.stream(spark)),
        BatchLog(tmp_path / "out", "append"),
        {left: [*events(rng, 5), end()], right: [*events(rng, 5), end()]},
        cuts=(1, 3),
    )
    assert_same_rows(rows, without_end([tuple(row) for row in plan(left.table(spark), right.table(spark)).collect()]))


@pytest.mark.long
def test_aggregation_after_deduplication(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """Duplicates are dropped before the count per window."""
    feed = runner.feed("events", SCHEMA)
    batches = [batch + rng.choices(batch, k=15) for batch in events(rng, per_batch=30)]

    def plan(frame: DataFrame) -> DataFrame:
        single = frame.withWatermark("ts", "10 seconds").dropDuplicates(["ts", "key", "value"])
        counted = single.groupBy(sf.window("ts", "10 seconds"), "key").agg(sf.count("*"), sf.sum("value"))
        return counted.select("window.start", "key", "count(1)", "sum(value)")

    rows = runner.run(lambda: plan(feed.stream(spark)), BatchLog(tmp_path / "out", "append"), {feed: [*batches, end()]})
    assert_same_rows(rows, without_end([tuple(row) for row in plan(feed.table(spark)).collect()]))
