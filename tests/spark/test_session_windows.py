"""Session windows, restarted in the middle, merge into the sessions of the batch answer."""

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


def sessions(frame: DataFrame) -> DataFrame:
    """Sessions per key, closed by five seconds of silence."""
    window = sf.session_window("ts", "5 seconds")
    grouped = frame.withWatermark("ts", "10 seconds").groupBy(window, "key")
    counted = grouped.agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))
    return counted.select("session_window.start", "session_window.end", "key", "n", "total")


@mainly_with_ids
@pytest.mark.parametrize(
    "merge_early",
    [
        pytest.param(False, id="merge-in-shuffle"),
        pytest.param(True, id="merge-before-shuffle", marks=pytest.mark.long),
    ],
)
def test_sessions_in_append_mode(
    merge_early: bool,
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    checkpoint_format: None,
) -> None:
    """Sessions that grow over batches and restarts are emitted once, complete."""
    spark.conf.set("spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition", str(merge_early).lower())
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "append")
    rows = runner.run(lambda: sessions(feed.stream(spark)), sink, {feed: [*events(rng), end()]})
    expected = without_end([tuple(row) for row in sessions(feed.table(spark)).collect()])
    assert any(row[3] != 1 for row in expected), "no session had two events"
    assert_same_rows(rows, expected)


def test_sessions_in_complete_mode(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """Every batch emits all sessions in full."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "complete")
    rows = runner.run(lambda: sessions(feed.stream(spark)), sink, {feed: events(rng)})
    assert_same_rows(rows, [tuple(row) for row in sessions(feed.table(spark)).collect()])
