"""Spark's `statestore` data source reads our state like that of its own providers."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.checkpoints import committed_batches
from tests.support.events import SCHEMA, events
from tests.support.formats import mainly_with_ids
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows


def run_aggregate(spark: SparkSession, runner: QueryRunner, sink: BatchLog, batches: list[Rows]) -> Rows:
    """Counts and sums by key of a query that is interrupted after two batches; returns the result."""
    feed = runner.feed("events", SCHEMA)

    def plan() -> DataFrame:
        return feed.stream(spark).groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))

    return runner.run(plan, sink, {feed: batches}, (2,))


@pytest.mark.core
@mainly_with_ids
def test_state_of_an_aggregate(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """The newest state holds the query's result, and the state of an earlier batch the result of that batch."""
    sink = BatchLog(tmp_path / "out", "complete")
    rows = run_aggregate(spark, runner, sink, events(rng, 5))
    reader = spark.read.format("statestore")
    state = reader.load(str(runner.location)).select("key.key", "value.count", "value.sum")
    assert_same_rows([tuple(row) for row in state.collect()], rows)
    earlier = reader.option("batchId", 2).load(str(runner.location)).select("key.key", "value.count", "value.sum")
    assert_same_rows([tuple(row) for row in earlier.collect()], sink.batches()[2])
    metadata = spark.read.format("state-metadata").load(str(runner.location)).collect()
    assert [(row.operatorName, row.numPartitions, row.maxBatchId) for row in metadata] == [
        ("stateStoreSave", 3, committed_batches(runner.location)[-1])
    ]


@pytest.mark.core
@mainly_with_ids
def test_changes_and_replays_of_an_aggregate(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """The change feed yields each batch's result; an early snapshot plus replayed changes yields the last one."""
    sink = BatchLog(tmp_path / "out", "complete")
    rows = run_aggregate(spark, runner, sink, events(rng, 6))
    last = committed_batches(runner.location)[-1]
    changes = (
        spark.read.format("statestore")
        .options(readChangeFeed=True, changeStartBatchId=0, changeEndBatchId=last)
        .load(str(runner.location))
    )
    changed = changes.select("batch_id", "change_type", "key.key", "value.count", "value.sum").collect()
    assert {row.change_type for row in changed} == {"update"}
    state: dict[str, tuple[str, int, int]] = {}
    for batch in range(last + 1):
        state.update({row.key: (row.key, row["count"], row["sum"]) for row in changed if row.batch_id == batch})
        assert_same_rows(list(state.values()), sink.batches()[batch])
    replayed: Rows = []
    for partition in range(3):
        reader = spark.read.format("statestore").options(snapshotStartBatchId=1, snapshotPartitionId=partition)
        replay = reader.load(str(runner.location))
        replayed += [tuple(row) for row in replay.select("key.key", "value.count", "value.sum").collect()]
    assert_same_rows(replayed, rows)


@pytest.mark.core
def test_state_of_a_join(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    """Each side of a join can be read: all input rows are found, since none has expired."""
    left, right = runner.feed("left", SCHEMA), runner.feed("right", SCHEMA)

    def plan() -> DataFrame:
        return (
            left.stream(spark)
            .alias("l")
            .join(right.stream(spark).alias("r"), "key")
            .select("key", "l.value", "r.value")
        )

    inputs = {left: events(rng, 3, per_batch=8), right: events(rng, 3, per_batch=8)}
    runner.run(plan, BatchLog(tmp_path / "out", "append"), inputs, (1,))
    for side, feed in (("left", left), ("right", right)):
        state = spark.read.format("statestore").option("joinSide", side).load(str(runner.location))
        values = state.select("value.key", "value.value")
        assert_same_rows([tuple(row) for row in values.collect()], [row[1:] for row in feed.rows()])


def test_state_is_read_in_a_batch_of_another_query(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """The reading tasks carry the local properties of another query, which does not own the checkpoint."""
    rows = run_aggregate(spark, runner, BatchLog(tmp_path / "out", "complete"), events(rng, 3))
    found: Rows = []

    def read(batch: DataFrame, _: int) -> None:
        state = batch.sparkSession.read.format("statestore").load(str(runner.location))
        found.extend(tuple(row) for row in state.select("key.key", "value.count", "value.sum").collect())

    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("a line\n")
    texts = spark.readStream.text(str(tmp_path / "texts"))
    other = texts.writeStream.foreachBatch(read).option("checkpointLocation", str(tmp_path / "other"))
    query = other.trigger(availableNow=True).start()
    query.awaitTermination()
    assert_same_rows(found, rows)
