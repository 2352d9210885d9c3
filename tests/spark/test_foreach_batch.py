"""foreachBatch: once, with the DataFrame used twice, with part of it used, and into Delta tables."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows


def by_key(frame: DataFrame) -> DataFrame:
    """A running count and sum for each key."""
    return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def answer(feed: Feed, spark: SparkSession) -> Rows:
    """The batch answer."""
    return [tuple(row) for row in by_key(feed.table(spark)).collect()]


class TwiceLog(BatchLog):
    """Runs the stateful stages of each batch twice, the second time after its checkpoint is complete."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        count = frame.count()
        super().write(frame, batch_id)
        kept = self.batches()[batch_id]
        assert len(kept) == count, f"batch {batch_id}: {count} rows the first time, {len(kept)} the second"


class PartialLog(BatchLog):
    """Looks at the first rows of a batch only, so that some of its partitions never run."""

    partial = True

    def write(self, frame: DataFrame, batch_id: int) -> None:
        if self.partial:
            frame.head(1)
        else:
            super().write(frame, batch_id)


class DeltaMerge:
    """Merges each batch into a Delta table by key."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.outputMode("update").foreachBatch(self.write)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        spark = frame.sparkSession
        if not DeltaTable.isDeltaTable(spark, self.folder):
            frame.limit(0).write.format("delta").save(self.folder)
        table = DeltaTable.forPath(spark, self.folder).alias("t")
        merge = table.merge(frame.alias("s"), "t.key = s.key").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        merge.execute()

    def rows(self, spark: SparkSession) -> Rows:
        return [tuple(row) for row in spark.read.format("delta").load(self.folder).collect()]


class DeltaAppend(DeltaMerge):
    """Appends each batch to a Delta table, once: Delta drops a batch that it has already."""

    def write(self, frame: DataFrame, batch_id: int) -> None:
        writer = frame.withColumn("batch", sf.lit(batch_id)).write.format("delta").mode("append")
        writer.option("txnAppId", "test").option("txnVersion", batch_id).save(self.folder)


def test_data_frame_used_twice(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Both uses see the same rows, and the state is as if there had been one."""
    feed = runner.feed("events", SCHEMA)
    sink = TwiceLog(tmp_path / "out", "update")
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng)})
    assert_same_rows(rows, answer(feed, spark))


def test_data_frame_used_in_part(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """A batch of which some subtasks never ran is not committed and no checkpoint; run as a whole it is both."""
    feed = runner.feed("events", SCHEMA)
    sink = PartialLog(tmp_path / "out", "update")
    for batch in events(rng, 2):
        feed.drop(batch)
    with pytest.raises(StreamingQueryException):  # Spark finds it, in words of its own
        runner.drain(by_key(feed.stream(spark)), sink)
    assert not committed_batches(runner.location)
    assert not completed_checkpoints(runner.location)
    sink.partial = False
    runner.drain(by_key(feed.stream(spark)), sink)
    assert_same_rows(runner.finish(sink), answer(feed, spark))


def test_merge_into_delta(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """The usual upsert; Delta's merge itself reads its source twice."""
    feed = runner.feed("events", SCHEMA)
    sink = DeltaMerge(tmp_path / "table")
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng, 4)}, (2,))
    assert_same_rows(rows, answer(feed, spark))


def test_append_to_delta(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """Every batch's updates stand in the table once, and the newest of each key are the batch answer."""
    feed = runner.feed("events", SCHEMA)
    sink = DeltaAppend(tmp_path / "table")
    rows = runner.run(lambda: by_key(feed.stream(spark)), sink, {feed: events(rng, 4)}, (2,))
    assert len({(row[0], row[3]) for row in rows}) == len(rows), "a batch was appended twice"
    newest = {row[0]: row[:3] for row in sorted(rows, key=lambda row: int(str(row[3])))}
    assert_same_rows(list(newest.values()), answer(feed, spark))
