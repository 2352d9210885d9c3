"""The same costs in a real query, on a standalone cluster: what checks the figures of the synthetic executors."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.nexmark.process_tree import thread_seconds
from benchmarks.scale.executors import STORES
from benchmarks.scale.playing import cpu_seconds, peak_bytes
from tests.support.processes import BRIDGE, find_below
from tests.support.provider import CKPT
from tests.support.session import open_session
from tests.support.standalone_cluster import StandaloneCluster
from tests.support.waiting import eventually

WARMUPS = 4
"""Batches before those that are measured."""

_ROWS = 2000
"""Rows of each side in a batch."""

_PATIENCE = 600.0

_ENDPOINT = ("dispatcher-even", "spark-ckpt-brid")
"""Threads of the driver's JVM that pass messages on, as the kernel names them: Spark's RPC, and our pipes."""


@dataclass(frozen=True)
class ClusterPoint:
    """Figures of a join in a number of partitions, with real executors.

    Args:
        executors: number of executors.
        partitions: number of subtasks.
        stores: number of stores, over all subtasks.
        batch_cpu_ms: CPU time of the side process for a batch; mean.
        endpoint_cpu_ms: CPU time of the driver's threads that pass messages on, for a batch; mean.
        batch_ms: duration of a batch; median.
        memory_bytes: most memory of the side process so far.
    """

    executors: int
    partitions: int
    stores: int
    batch_cpu_ms: float
    endpoint_cpu_ms: float
    batch_ms: float
    memory_bytes: int


def measure_cluster(partitions: Iterable[int], executors: int, batches: int, folder: Path) -> Iterator[ClusterPoint]:
    """Runs a stream-stream join on a cluster, with one number of partitions after the other.

    Args:
        partitions: numbers of partitions, with four stores each.
        executors: number of executors, of one core each.
        batches: number of batches that count.
        folder: folder for the cluster and the locations.
    """
    conf = {"spark.executor.memory": "768m", "spark.executor.cores": "1", "spark.locality.wait": "0s"}
    with StandaloneCluster(folder / "cluster", executors, "1g") as cluster:
        spark = open_session(CKPT, folder, master=cluster.url, conf=conf)
        try:
            eventually(lambda: len(cluster.executors()) == executors, _PATIENCE, lambda: f"{executors} executors run")
            for number in partitions:
                yield _measure(spark, number, executors, batches, folder / f"partitions-{number}")
        finally:
            spark.stop()


def _measure(spark: SparkSession, partitions: int, executors: int, batches: int, folder: Path) -> ClusterPoint:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    writer = _join(spark).writeStream.format("noop").outputMode("append")
    query = writer.option("checkpointLocation", (folder / "checkpoint").as_uri()).start()

    def is_at(batch: int) -> bool:
        if (error := query.exception()) is not None:
            raise error
        return query.lastProgress is not None and query.lastProgress.batchId >= batch

    driver = _jvm()
    eventually(lambda: is_at(WARMUPS), _PATIENCE, lambda: f"batch {WARMUPS} of {partitions} partitions ends")
    (side,) = find_below(driver, BRIDGE)
    before, endpoint, begun = cpu_seconds(side), thread_seconds(driver, _ENDPOINT), query.lastProgress
    eventually(lambda: is_at(WARMUPS + batches), _PATIENCE, lambda: f"batch {WARMUPS + batches} ends")
    used, endpoint_used = cpu_seconds(side) - before, thread_seconds(driver, _ENDPOINT) - endpoint
    ended = query.lastProgress
    assert begun is not None
    assert ended is not None
    count = ended.batchId - begun.batchId
    batch_ms = statistics.median(one.batchDuration for one in query.recentProgress[-count:])
    query.stop()
    shutil.rmtree(folder, ignore_errors=True)
    return ClusterPoint(
        executors,
        partitions,
        partitions * len(STORES),
        used * 1000 / count,
        endpoint_used * 1000 / count,
        batch_ms,
        peak_bytes(side),
    )


def _join(spark: SparkSession) -> DataFrame:
    left, right = (_numbers(spark).withColumnRenamed("value", name) for name in ("a", "b"))
    return left.join(right, F.expr("a = b"))


def _numbers(spark: SparkSession) -> DataFrame:
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _ROWS).option("numPartitions", 2)
    return reader.load().select("value")


def _jvm() -> int:
    """Pid of the JVM that this process has started."""
    (found,) = find_below(os.getpid(), "org.apache.spark.deploy.SparkSubmit")
    return found
