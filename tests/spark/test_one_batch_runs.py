"""Runs of one batch each, as in a scheduled job, and stores that are unloaded after each batch."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.location.listing import list_completed
from spark_ckpt.storage import LocalStorage
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import PATIENCE, QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows

MAX_DELTAS, BOUND = 4, 8
BATCHES = 24


class ScheduledJob:
    """A query that runs for as many batches as there is new input, and ends."""

    def __init__(self, spark: SparkSession, runner: QueryRunner, tmp_path: Path) -> None:
        self._spark, self._runner = spark, runner
        self._feed = runner.feed("rows", "key STRING, value INT")
        self._sink = BatchLog(tmp_path / "out", "update")
        self._batches = 0

    def run(self, batches: int) -> None:
        """Runs the query once, on that many batches of new input."""
        for _ in range(batches):
            self._feed.drop([(f"k{(self._batches * 7 + i) % 50}", i) for i in range(20)])
            self._batches += 1
        frame = self._plan(self._feed.stream(self._spark))
        query = self._runner.start(frame, self._sink, lambda writer: writer.trigger(availableNow=True))
        assert query.awaitTermination(int(PATIENCE)), "the query did not end by itself"
        assert query.exception() is None

    def longest_chain(self) -> int:
        """Largest number of deltas that a store would load now; one that replaces a base does not count."""
        storage = LocalStorage(self._runner.location)
        newest = read_checkpoint(storage, list_completed(storage).records[-1])
        return max(chain.deltas for chains in newest.table.values() for chain in chains)

    def finish(self) -> None:
        """Asserts that the result is correct and that no unpublished base remains: the runner finds no orphans."""
        expected = [tuple(row) for row in self._plan(self._feed.table(self._spark)).collect()]
        assert_same_rows(self._runner.finish(self._sink), expected)

    def _plan(self, frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


@pytest.fixture
def job(spark: SparkSession, runner: QueryRunner, tmp_path: Path, provider: ProviderUnderTest) -> ScheduledJob:
    if not provider.is_ours:
        pytest.skip("about our checkpoints")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", str(MAX_DELTAS))
    spark.conf.set(CKPT_PREFIX + "ackThreshold", "0")
    return ScheduledJob(spark, runner, tmp_path)


def test_the_chain_is_bounded_over_runs_of_one_batch_each(job: ScheduledJob) -> None:
    """Bases are published although no store lives for a second batch."""
    lengths = []
    for _ in range(BATCHES):
        job.run(1)
        lengths.append(job.longest_chain())
    assert MAX_DELTAS // 2 <= max(lengths) <= BOUND, lengths
    job.finish()


@pytest.mark.long
def test_the_chain_is_bounded_where_stores_are_unloaded_on_commit(job: ScheduledJob, spark: SparkSession) -> None:
    """Each batch reloads its state, and no store lives long enough to send a base with a later acknowledgement."""
    spark.conf.set("spark.sql.streaming.stateStore.unloadOnCommit", "true")
    job.run(BATCHES)
    assert job.longest_chain() <= BOUND
    job.finish()
