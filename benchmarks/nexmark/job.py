"""A query with all providers in one warm JVM, as a spark-submit program: results are written to a file, a line each.

spark-submit ... job.py ORDER RESULTS, where ORDER is the JSON of an `Order`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.nexmark.feeds import Feed, Files, Kafka, Topics
from benchmarks.nexmark.process_tree import usage
from benchmarks.nexmark.queries import QUERIES, Query

WARM_UP = -1
"""Number of the round that only warms up the JVM: what it compiles, all providers need."""

_ANSWER = "answer"
_MASK = (1 << 31) - 1
_REMOVALS = 20
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Order:
    """Instructions for one JVM.

    Args:
        query: name of the query.
        feed: the prepared stream, a file per batch.
        work: empty folder for input and checkpoints.
        events: events per batch.
        warmups: batches before the measured ones, in each run.
        measured: measured batches; then one for a restart.
        runs: round and provider of each run.
        settings: settings of each provider; `{mb}` in a value stands for a quarter of the memory that the provider
            `quarter_of` took for its state, in MiB.
        quarter_of: that provider.
        kafka: address of the broker that has the events; None for files.
    """

    query: str
    feed: str
    work: str
    events: int
    warmups: int
    measured: int
    runs: Sequence[tuple[int, str]]
    settings: Mapping[str, Mapping[str, str]]
    quarter_of: str
    kafka: str | None = None

    def name_of(self, number: int, provider: str) -> str:
        """Name of a run: of its folder, and of its topic."""
        return f"{self.query}.{provider}.{number}"

    @property
    def files(self) -> list[Path]:
        """The prepared files, one per batch."""
        return sorted(Path(self.feed).iterdir())


class Job:
    """One run: a new session, a new location, and its input."""

    def __init__(self, spark: SparkSession, order: Order, name: str, settings: Mapping[str, str]) -> None:
        self._spark = spark.newSession()
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        self._order = order
        self._query: Query = QUERIES[order.query]
        self._folder = Path(order.work) / name
        self._folder.mkdir(parents=True)
        self._location = self._folder / "checkpoint"
        self._feed = _feed(spark, order, name, self._folder / "events")

    def measure(self) -> dict[str, Any]:
        """Runs the query; returns the samples, the rows of state and the answer."""
        order, jvm = self._order, os.getppid()
        query = self._start()
        self._feed.warm_up(query)
        warm_up = len(query.recentProgress)
        before, began = usage(jvm), time.monotonic()
        self._feed.measure(query)
        took, used = time.monotonic() - began, usage(jvm) - before
        batches = _progress(query)
        heap, stored = self._heap(), _size(self._location)
        query.stop()
        self._feed.restart()
        began = time.monotonic()
        query = self._start()
        query.processAllAvailable()
        restarted = time.monotonic() - began
        self._feed.end()
        query.processAllAvailable()
        output = [*batches, *_progress(query)]
        query.stop()
        millions = order.measured * order.events / 1e6
        measured = [found for found in batches[warm_up:] if found["numInputRows"]]
        last = measured[-1]["stateOperators"]
        samples = {
            "events_s": [order.measured * order.events / took],
            "batch_ms": [found["batchDuration"] for found in measured],
            "cpu_s": [used.cpu_seconds / millions],
            "state_ms": [_state_ms(found) for found in measured],
            "state_mb": [sum(operator["memoryUsedBytes"] for operator in last) / 1e6],
            "heap_mb": [heap / 1e6],
            "stored_mb": [stored / 1e6],
            "written_mb": [used.written_bytes / 1e6 / millions],
            "restart_ms": [restarted * 1000],
        }
        rows = sum(operator["numRowsTotal"] for operator in last)
        return {"samples": samples, "rows": rows, "answer": _answer(output, final=not self._query.key)}

    def expect(self) -> dict[str, Any]:
        """The answer of the batch query over the files that a run uses, but the one that closes windows."""
        used = self._order.files[: self._order.warmups + self._order.measured + 1]
        frame = self._query.batch(self._spark.read.parquet(*map(str, used)))
        count, low, high = frame.agg(*_sums(frame)).first() or (0, 0, 0)
        return {"samples": {}, "rows": 0, "answer": [[count, low or 0, high or 0]]}

    def close(self) -> None:
        """Frees the memory of the state, and deletes the files."""
        jvm: Any = self._spark.sparkContext._jvm
        stores = getattr(jvm, "org.apache.spark.sql.execution.streaming.state.StateStore$")
        getattr(stores, "MODULE$").unloadAll()  # otherwise Spark's maintenance does so later, during the next run
        _remove(self._folder)

    def _start(self) -> StreamingQuery:
        frame = self._query.stream(self._feed.events(self._spark))
        observed = frame.observe(_ANSWER, *_sums(frame))
        writer = observed.writeStream.format("noop").outputMode(self._query.mode)
        return writer.option("checkpointLocation", self._location.as_uri()).start()

    def _heap(self) -> int:
        """Bytes in use on the heap after a collection."""
        jvm: Any = self._spark.sparkContext._jvm
        for _ in range(3):
            jvm.java.lang.System.gc()
        found = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
        return int(found.getUsed())


def run_all(spark: SparkSession, order: Order, results: Path) -> None:
    """Executes the runs in turn, and appends a line per run but those that only warm up."""
    quarter_mb = 1
    if order.kafka is not None:
        Topics(order.kafka, spark, Path(order.feed)).write(order.query, order.files[: order.warmups + order.measured])
    for number, provider in order.runs:
        settings = {k: v.replace("{mb}", str(quarter_mb)) for k, v in order.settings.get(provider, {}).items()}
        job = Job(spark, order, order.name_of(number, provider), settings)
        found = job.measure() if provider in order.settings else job.expect()
        job.close()
        if provider == order.quarter_of:
            quarter_mb = max(int(found["samples"]["state_mb"][0] / 4), 1)
        if number != WARM_UP:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"round": number, "provider": provider, **found}) + "\n")


def _feed(spark: SparkSession, order: Order, name: str, folder: Path) -> Feed:
    if order.kafka is None:
        return Files(order.files, folder, order.warmups, order.measured)
    topics = Topics(order.kafka, spark, Path(order.feed))
    return Kafka(topics, order.files, order.query, name, order.events, order.warmups, order.measured)


def _remove(folder: Path) -> None:
    """Deletes a folder in which background work of a query that has ended may still delete files."""
    for _ in range(_REMOVALS):
        try:
            shutil.rmtree(folder)
            return
        except OSError:  # noqa: PERF203
            time.sleep(_PAUSE_SECONDS)
    shutil.rmtree(folder)


def _sums(frame: DataFrame) -> list[Any]:
    """Number of rows, and two sums over a hash of each: equal for equal rows in any order."""
    digest = F.xxhash64(*(F.col(f"`{name}`") for name in frame.columns))
    halves = (digest.bitwiseAND(_MASK), F.shiftright(digest, 32))
    return [F.count(F.lit(1)).alias("count"), *(F.sum(half).alias(f"sum{n}") for n, half in enumerate(halves))]


def _answer(batches: list[dict[str, Any]], *, final: bool) -> list[list[int]]:
    """Digest of the output: of all batches together if rows are final, else of each batch with output."""
    parts = []
    for found in batches:
        one = found.get("observedMetrics", {}).get(_ANSWER, {})
        if one.get("count"):
            parts.append([int(one["count"]), int(one["sum0"]), int(one["sum1"])])
    return [[sum(column) for column in zip(*parts, strict=True)]] if final and parts else parts


def _progress(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(progress.json) for progress in query.recentProgress]


def _state_ms(progress: dict[str, Any]) -> float:
    names = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")
    return float(sum(operator[name] for operator in progress["stateOperators"] for name in names))


def _size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):  # background work deletes files
            total += file.stat().st_size if file.is_file() else 0
    return total


def main(order: str, results: str) -> None:
    """Executes the order."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    run_all(spark, Order(**json.loads(order)), Path(results))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
