"""Imports and exports of stopped queries, and a plain read of the same state for comparison."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.stores import machine
from benchmarks.stores.plan import Run
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.results import Record
from benchmarks.stores.stopped import stopped_location
from benchmarks.stores.workloads import Workload
from spark_ckpt import export_location, import_location
from spark_ckpt.migrate.stopped_query import read_stopped_query
from spark_ckpt.storage import LocalStorage

_CHANGES = 4  # batches after the load, each with a hundredth of the keys
_FORMATS = {"hdfs": "spark-hdfs", "rocksdb": "spark-rocksdb", "rocksdb-changelog": "spark-rocksdb"}


def workloads(keys: Iterable[int], partitions: int) -> Iterator[Workload]:
    """A running count over each number of keys."""
    for count in keys:
        yield Workload(
            f"transfer-{count}",
            f"running count over {count:,} keys in {partitions} partitions",
            keys=count,
            changed=max(1, count // 100),
            partitions=partitions,
            warmups=0,
            batches=_CHANGES,
            providers=tuple(_FORMATS),
        )


class Transfers:
    """Reads, imports and exports the state of stopped queries.

    Args:
        spark: session with the jar of the benchmarks.
        work: folder for input and locations.
        seed: seed of the input.
    """

    def __init__(self, spark: SparkSession, work: Path, seed: int) -> None:
        self._spark = spark
        self._work = work
        self._seed = seed

    def run(self, run: Run) -> Record:
        """Reads the state, imports it into a new location, and exports that one."""
        source = stopped_location(self._spark, self._work, run, run.workload.partitions, self._seed)
        ours, theirs = self._work / "ours", self._work / "theirs"
        for place in (ours, theirs):
            shutil.rmtree(place, ignore_errors=True)
        load = machine.load()
        rows, scan_ms = _timed(lambda: self._scan(run, source))
        self._reset_peaks()
        _, import_ms = _timed(lambda: import_location(self._spark, str(source), str(ours), force=True))
        peak = self._peak()
        form = _FORMATS[run.provider]
        # The first commit of the imported query would come from a driver; an export needs none.
        _, export_ms = _timed(lambda: export_location(self._spark, str(ours), str(theirs), form, force=True))
        written = sum(path.stat().st_size for path in (ours / "ckpt").rglob("*") if path.is_file())
        if self._scan(run, theirs) != rows:
            raise AssertionError(f"{run.name}: the exported state has another number of rows than the imported one")
        samples = {
            "scan_ms": [scan_ms],
            "import_ms": [import_ms],
            "import_ratio": [import_ms / scan_ms],
            "export_ms": [export_ms],
            "export_ratio": [export_ms / scan_ms],
            "heap_peak_bytes": [float(peak)],
            "written_bytes": [float(written)],
        }
        for place in (ours, theirs):
            shutil.rmtree(place)
        return Record(run, samples, rows, load, {**machine.facts(), "seed": self._seed})

    def _scan(self, run: Run, location: Path) -> int:
        session: Any = self._spark
        version = read_stopped_query(LocalStorage(location)).version
        provider = PROVIDERS[run.provider].class_name
        scan = session._jvm.org.apache.spark.sql.benchmark.StateScan
        return int(scan.rows(session._jsparkSession, location.as_uri(), version, run.workload.partitions, provider))

    def _pools(self) -> list[Any]:
        session: Any = self._spark
        beans = session._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        return [pool for pool in beans if pool.getType().name() == "HEAP"]

    def _reset_peaks(self) -> None:
        session: Any = self._spark
        session._jvm.java.lang.System.gc()
        for pool in self._pools():
            pool.resetPeakUsage()

    def _peak(self) -> int:
        return sum(int(pool.getPeakUsage().getUsed()) for pool in self._pools())


def _timed(act: Callable[[], Any]) -> tuple[Any, float]:
    """Result and duration in milliseconds."""
    began = time.monotonic()
    result = act()
    return result, (time.monotonic() - began) * 1000
