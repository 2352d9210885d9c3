"""Operators that run as one task whatever the shuffle setting: global aggregate and limit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.events import SCHEMA, events
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, ParquetSink, assert_same_rows
from tests.support.spark_version import since

# Spark 4.0 asserts that the store of each partition has committed, of as many as the shuffle setting says.
state_ids = pytest.mark.parametrize(
    "checkpoint_format",
    ["ids-off", pytest.param("ids-on", marks=since("4.1", "state ids of operators that run as one task"))],
    indirect=True,
)


@state_ids
@pytest.mark.parametrize("mode", ["update", "complete"])
def test_global_aggregate(
    mode: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """A single row of state in a single subtask."""
    feed = runner.feed("events", SCHEMA)

    def plan(frame: DataFrame) -> DataFrame:
        return frame.agg(sf.lit("all"), sf.count("*"), sf.sum("value"), sf.max("key"))

    rows = runner.run(
        lambda: plan(feed.stream(spark)), BatchLog(tmp_path / "out", mode), {feed: events(rng, 5)}, (1, 3)
    )
    assert_same_rows(rows, [tuple(row) for row in plan(feed.table(spark)).collect()])


@state_ids
def test_limit(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """The number of emitted rows is state: the first rows are emitted, and no more after a restart."""
    feed = runner.feed("events", SCHEMA)
    batches = events(rng, 6, per_batch=10)
    rows = runner.run(lambda: feed.stream(spark).limit(35), ParquetSink(tmp_path / "out"), {feed: batches}, (2, 4))
    assert_same_rows(rows, feed.rows()[:35])
