"""Aggregations in all output modes, restarted in the middle, produce the batch answer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.events import SCHEMA, end, events, without_end
from tests.support.formats import mainly_with_ids
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, ParquetSink, Rows, Sink, assert_same_rows


def figures() -> list[Column]:
    """Aggregates of every buffer shape: fixed width, nullable, variable width."""
    return [
        sf.count("*").alias("n"),
        sf.sum("value").alias("total"),
        sf.min("value").alias("low"),
        sf.max("ts").alias("last"),
        sf.sort_array(sf.collect_set(sf.col("value") % 5)).cast("string").alias("rests"),
    ]


def by_key(frame: DataFrame) -> DataFrame:
    """One running aggregate per key."""
    return frame.groupBy("key").agg(*figures())


def by_window(frame: DataFrame) -> DataFrame:
    """Sliding windows, with each event in two of them."""
    windows = sf.window("ts", "20 seconds", "10 seconds")
    grouped = frame.withWatermark("ts", "10 seconds").groupBy(windows, "key").agg(*figures())
    return grouped.select("window.start", "key", "n", "total", "low", "last", "rests")


def by_window_of_windows(frame: DataFrame) -> DataFrame:
    """Two stateful operators: the second aggregates the windows of the first."""
    first = (
        frame.withWatermark("ts", "10 seconds")
        .groupBy(sf.window("ts", "10 seconds"), "key")
        .agg(sf.count("*").alias("n"))
    )
    second = first.groupBy(sf.window(sf.window_time("window"), "30 seconds")).agg(
        sf.sum("n").alias("n"), sf.count("*").alias("parts")
    )
    return second.select("window.start", "n", "parts")


def answer(frame: DataFrame) -> Rows:
    """The batch answer without the row that only moves the watermark."""
    return [tuple(row) for row in frame.collect()]


@pytest.mark.parametrize(
    "mode", [pytest.param("update", marks=pytest.mark.core), pytest.param("complete", marks=pytest.mark.long)]
)
def test_running_aggregate(
    mode: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Counts, sums, extremes and sets by key survive restarts, in both checkpoint formats."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", mode)
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng)})
    assert_same_rows(rows, answer(by_key(feed.table(spark))))


@pytest.mark.parametrize("kind", ["file sink", pytest.param("foreachBatch", marks=pytest.mark.long)])
def test_windows_in_append_mode(
    kind: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """Windows are emitted once, when the watermark has passed them, and leave the state."""
    feed = runner.feed("events", SCHEMA)
    sink: Sink = ParquetSink(tmp_path / "out") if kind == "file sink" else BatchLog(tmp_path / "out", "append")
    rows = runner.run(lambda: by_window(feed.stream(spark)), sink, {feed: [*events(rng), end()]})
    assert_same_rows(rows, without_end(answer(by_window(feed.table(spark)))))


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_windows_in_other_modes(
    mode: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """Windows with a watermark, emitted on each change or all together."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", mode, keys=2)
    rows = runner.run(lambda: by_window(feed.stream(spark)), sink, {feed: events(rng)})
    assert_same_rows(rows, answer(by_window(feed.table(spark))))


@mainly_with_ids
def test_aggregation_of_an_aggregation(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Two aggregations in a chain, each with a store of its own."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "append")
    rows = runner.run(lambda: by_window_of_windows(feed.stream(spark)), sink, {feed: [*events(rng), end()]})
    table = by_window_of_windows(feed.table(spark))
    assert_same_rows(rows, answer(table.where(sf.year("start") == 2024).where(sf.dayofyear("start") == 1)))
