"""The two phases: many batches of one query, and many runs of one batch each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from tests.endurance.samples import Sample, take_sample
from tests.support.checkpoints import committed_batches
from tests.support.provider import CKPT
from tests.support.session import open_session
from tests.support.waiting import eventually

PATIENCE = 600
KEYS = 50
SAMPLES = 30

Progress = Callable[[str, int, Sample], None]


def open_driver(folder: Path) -> SparkSession:
    """Driver with the settings of a small production job. Spark retains as little as possible for its UI."""
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.sql.streaming.ui.enabled": "false",
        "spark.cleaner.periodicGC.interval": "5min",
        "spark.sql.streaming.stateStore.ckpt.retained": "2",
        "spark.sql.streaming.stateStore.ckpt.chain.maxDeltas": "4",
    }
    return open_session(CKPT, folder, conf=conf)


def many_batches(spark: SparkSession, folder: Path, batches: int, progress: Progress) -> list[Sample]:
    """One run of a query, sampled when the query is idle, or nearly so, between two batches.

    Args:
        spark: the driver.
        folder: an empty folder.
        batches: minimum number of batches.
        progress: called with each sample.
    """
    location = folder / "batches"
    samples = []
    query = _start(_counts(spark), location)
    try:
        for number in range(1, SAMPLES + 1):
            done = batches * number // SAMPLES
            _await(query, lambda done=done: last_batch(location) + 1 >= done)  # type: ignore[misc]
            samples.append(take_sample(spark, location))
            progress("batches", done, samples[-1])
    finally:
        query.stop()
    return samples


def many_runs(spark: SparkSession, folder: Path, runs: int, progress: Progress) -> list[Sample]:
    """Runs of one batch each on one location, as started by a scheduler.

    Args:
        spark: the driver.
        folder: an empty folder.
        runs: number of runs.
        progress: called with each sample.
    """
    location = folder / "runs"
    samples = []
    for run in range(1, runs + 1):
        query = _start(_counts(spark), location, once=True)
        if not query.awaitTermination(PATIENCE):
            query.stop()
            raise TimeoutError(f"run {run} does not end")
        assert last_batch(location) + 1 == run, f"run {run} has made the batches up to {last_batch(location)}"
        if run * SAMPLES // runs != (run - 1) * SAMPLES // runs:
            samples.append(take_sample(spark, location))
            progress("runs", run, samples[-1])
    return samples


def last_batch(location: Path) -> int:
    """Last committed batch; -1 before the first."""
    return max(committed_batches(location), default=-1)


def _counts(spark: SparkSession) -> DataFrame:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 1).load()
    return stream.groupBy((sf.col("value") % KEYS).alias("key")).agg(sf.count("*").alias("n"))


def _start(frame: DataFrame, location: Path, once: bool = False) -> StreamingQuery:
    writer = frame.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(location))
    writer = writer.trigger(once=True) if once else writer.trigger(processingTime="0 seconds")
    return writer.start()


def _await(query: StreamingQuery, done: Callable[[], bool]) -> None:
    def holds() -> bool:
        if done():
            return True
        if (error := query.exception()) is not None:
            raise error
        return False

    eventually(holds, 10 * PATIENCE, "the query makes progress")
