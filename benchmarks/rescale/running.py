"""Checkpoint locations of queries with some state, and the cost of changing their number of partitions."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.stores import machine
from benchmarks.stores.plan import Run
from benchmarks.stores.providers import OURS, PROVIDERS
from benchmarks.stores.results import Record
from benchmarks.stores.stopped import stopped_location
from benchmarks.stores.workloads import Workload
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.storage import LocalStorage

BEFORE = 8
"""Number of partitions of each query before the rescale; it implies 1024 key groups."""

RIVAL = PROVIDERS["rocksdb"]
"""The provider whose state Spark can repartition."""

_CHANGES = 8  # batches after the load, each with a hundredth of the keys


def workloads(keys: Iterable[int], partitions: Iterable[int]) -> Iterator[Workload]:
    """A running count over each number of keys, for each target number of partitions."""
    for number in partitions:
        for count in keys:
            yield Workload(
                f"rescale-{count}-to-{number}",
                f"running count over {count:,} keys, from {BEFORE} to {number} partitions",
                keys=count,
                changed=max(1, count // 100),
                partitions=number,
                warmups=0,
                batches=_CHANGES,
                providers=(OURS.name, RIVAL.name),
            )


class Rescaler:
    """Changes the number of partitions of copies of locations.

    Args:
        spark: session created by `session`.
        work: folder for input, locations and their copies.
        seed: seed of the input.
    """

    def __init__(self, spark: SparkSession, work: Path, seed: int) -> None:
        self._spark = spark
        self._work = work
        self._seed = seed

    def run(self, run: Run) -> Record:
        """Rescales a fresh copy, and counts its rows afterwards."""
        original = stopped_location(self._spark, self._work, run, BEFORE, self._seed)
        copy = self._work / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        load, before = machine.load(), _files(copy)
        change = {OURS.name: self._by_metadata, RIVAL.name: self._by_spark}[run.provider]
        began = time.monotonic()
        change(copy, run.workload.partitions)
        took_ms = (time.monotonic() - began) * 1000
        written = sum(size for name, (size, changed) in _files(copy).items() if before.get(name) != (size, changed))
        rows = self._spark.read.format("statestore").load(copy.as_uri()).count()
        shutil.rmtree(copy)
        samples = {"rescale_ms": [took_ms], "written_bytes": [float(written)]}
        return Record(run, samples, rows, load, {**machine.facts(), "seed": self._seed})

    def _by_metadata(self, location: Path, partitions: int) -> None:
        rescale(LocalStorage(location), partitions, force=True)  # forced: this JVM ran the query and is still alive

    def _by_spark(self, location: Path, partitions: int) -> None:
        jvm: Any = self._spark._jsparkSession
        jvm.streamingCheckpointManager().repartition(location.as_uri(), partitions, True)


def _files(location: Path) -> dict[str, tuple[int, int]]:
    """Size and modification time of every file."""
    found = ((path, path.stat()) for path in location.rglob("*") if path.is_file())
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found}
