"""A single run as a spark-submit program: one provider on one workload, results written to a file.

spark-submit ... job.py ORDER RESULT, where ORDER is the JSON of an `Order`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.stores.figures import (
    Batch,
    Memory,
    Samples,
    batch_of,
    batch_samples,
    bytes_samples,
    growth_samples,
    memory_samples,
)
from benchmarks.stores.queries import OUTPUT_MODES, build
from benchmarks.stores.workloads import Workload


@dataclass(frozen=True)
class Order:
    """Instructions for one run.

    Args:
        workload: the workload to measure.
        feed: the prepared input.
        work: empty folder for the query's input files.
        location: URI of the checkpoint location, which must not exist yet.
        is_restart: true for a restart in a JVM of its own, of a location that another order has left.
    """

    workload: Workload
    feed: str
    work: str
    location: str
    is_restart: bool = False

    @classmethod
    def of_json(cls, text: str) -> Order:
        """Parses the JSON of the fields."""
        found = json.loads(text)
        return cls(**found | {"workload": Workload.of_json(found["workload"])})


class Job:
    """The query of a run, and its input."""

    def __init__(self, spark: SparkSession, order: Order) -> None:
        self._spark = spark
        self._order = order
        self._workload = order.workload
        self._feed = {folder: sorted(folder.iterdir()) for folder in Path(order.feed).iterdir()}
        self._work = Path(order.work)
        for folder in self._feed:
            (self._work / folder.name).mkdir(parents=True, exist_ok=order.is_restart)
        self._dropped = max(len(list((self._work / folder.name).iterdir())) for folder in self._feed)

    def measure(self) -> dict[str, Any]:
        """Runs the query; returns samples, rows of state, and the start and end of the measured batches."""
        measured = {
            "batches": self._batches,
            "bytes": self._bytes,
            "restart": self._restarts,
            "short": self._fresh if self._order.is_restart else self._short,
            "memory": self._memory,
        }
        samples, batches = measured[self._workload.kind]()
        return {
            "samples": samples,
            "rows": batches[-1].rows,
            "batches": len(batches),
            "began": batches[0].began,
            "ended": batches[-1].ended,
        }

    def _batches(self) -> tuple[Samples, list[Batch]]:
        files = len(self._workload.loads) + self._workload.warmups + self._workload.batches
        before = None if self._workload.memory_mb is None else self._look()
        self._drop(files)
        query = self._start()
        batches = _work_off(query)
        growth = {} if before is None else growth_samples(before, self._look())
        query.stop()
        if len(batches) != files:
            raise RuntimeError(f"{len(batches)} batches with input, and not one for each of {files} files")
        measured = batches[-self._workload.batches :]
        return {**batch_samples(measured), **growth}, measured

    def _short(self) -> tuple[Samples, list[Batch]]:
        samples, batches = self._batches()
        return {**samples, "restart_ms": [self._restart()[0]]}, batches

    def _fresh(self) -> tuple[Samples, list[Batch]]:
        took, batches = self._restart()
        return {"fresh_ms": [took]}, batches

    def _bytes(self) -> tuple[Samples, list[Batch]]:
        samples, batches = self._batches()
        return {**samples, **bytes_samples(batches)}, batches

    def _restarts(self) -> tuple[Samples, list[Batch]]:
        self._drop(len(self._workload.loads) + self._workload.warmups + self._workload.batches)
        query = self._start()
        _work_off(query)
        query.stop()
        times, batches = [], []
        for _ in range(self._workload.restarts):
            took, more = self._restart()
            times.append(took)
            batches += more
        return {"restart_ms": times}, batches

    def _restart(self) -> tuple[float, list[Batch]]:
        """Milliseconds from a start with one batch of input to its commit, and the batch."""
        self._drop(1)
        began = time.time()
        query = self._start()
        batches = _work_off(query)
        query.stop()
        return (batches[-1].ended - began) * 1000, batches

    def _memory(self) -> tuple[Samples, list[Batch]]:
        few, *many = self._workload.loads
        self._drop(1)
        query = self._start()
        _work_off(query)
        before = self._look()
        self._drop(len(many) + self._workload.changes)
        batches = _work_off(query)
        after = self._look()
        query.stop()
        return memory_samples(before, after, self._workload.keys - few), batches

    def _start(self) -> StreamingQuery:
        frame = build(self._spark, self._workload.query, self._work)
        writer = frame.writeStream.format("noop").outputMode(OUTPUT_MODES[self._workload.query])
        return writer.option("checkpointLocation", self._order.location).start()

    def _drop(self, count: int) -> None:
        """Adds `count` batches of input."""
        for folder, files in self._feed.items():
            for file in files[self._dropped : self._dropped + count]:
                os.link(file, self._work / folder.name / file.name)
        self._dropped += count

    def _look(self) -> Memory:
        """The JVM's memory after a collection. The whole heap is resident from the start (AlwaysPreTouch)."""
        jvm: Any = self._spark.sparkContext._jvm
        runtime = jvm.java.lang.Runtime.getRuntime()
        for _ in range(2):  # the second collection frees what the first one made unreachable
            runtime.gc()
        heap = runtime.totalMemory()
        driver = os.getppid()  # this program is a child of spark-submit's JVM
        return Memory(heap - runtime.freeMemory(), _resident(driver) - heap)


def _work_off(query: StreamingQuery) -> list[Batch]:
    """Waits until the query has processed all of its input; returns all batches with input since its start."""
    query.processAllAvailable()
    return [batch_of(json.loads(progress.json)) for progress in query.recentProgress if progress.numInputRows]


def _resident(pid: int) -> int:
    """Resident memory of a process, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


def main(order: str, result: str) -> None:
    """Executes the order and writes the measurements as JSON."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    found: Mapping[str, Any] = Job(spark, Order.of_json(order)).measure()
    Path(result).write_text(json.dumps(found), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
