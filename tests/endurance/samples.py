"""Resource usage of a driver, its side process and a checkpoint location at a moment."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import CheckpointRecord, RecordFiles
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.storage import LocalStorage
from tests.support.processes import BRIDGE, find_below

MIB = 1 << 20


@dataclass(frozen=True)
class Figure:
    """A measured quantity.

    Args:
        name: name for people.
        slack: permitted growth from the middle third of a run to the last third.
        ratio: permitted growth as a fraction of the middle third; the larger of both applies.
        is_exact: whether it is a count, by which a short run can be judged; false for memory.
    """

    name: str
    slack: float
    ratio: float = 0.0
    is_exact: bool = True


FIGURES = {
    "heap": Figure("heap of the driver after GC, MiB", 6, 0.1, is_exact=False),
    "driver_rss": Figure("RSS of the driver, MiB", 48, 0.1, is_exact=False),
    "process_rss": Figure("RSS of the side process, MiB", 8, 0.1, is_exact=False),
    "driver_threads": Figure("threads of the driver", 6),
    "process_threads": Figure("threads of the side process", 1),
    "driver_files": Figure("descriptors of the driver", 8),
    "process_files": Figure("descriptors of the side process", 1),
    "files": Figure("files below ckpt/", 4),
    "chain": Figure("segments in the longest chain", 4, 0.25),
}

Sample = Mapping[str, float]


def take_sample(spark: SparkSession, location: Path) -> Sample:
    """Current usage, by figure.

    Args:
        spark: a session of this process's driver.
        location: the checkpoint location of its query.
    """
    jvm: Any = spark._jvm
    gc.collect()  # Python's proxies keep JVM objects alive
    factory = jvm.java.lang.management.ManagementFactory
    for _ in range(2):
        jvm.System.gc()
    driver = int(jvm.java.lang.ProcessHandle.current().pid())
    sample = {
        "heap": factory.getMemoryMXBean().getHeapMemoryUsage().getUsed() / MIB,
        "driver_rss": _rss(driver),
        "driver_threads": _entries(driver, "task"),
        "driver_files": _entries(driver, "fd"),
        # `os.walk` tolerates directories that disappear meanwhile.
        "files": float(sum(len(names) for _, _, names in os.walk(location / "ckpt"))),
        "chain": float(longest_chain(location)),
    }
    processes = find_below(driver, BRIDGE)
    if processes:
        sample["process_rss"] = sum(_rss(pid) for pid in processes)
        sample["process_threads"] = sum(_entries(pid, "task") for pid in processes)
        sample["process_files"] = sum(_entries(pid, "fd") for pid in processes)
    return sample


def longest_chain(location: Path) -> int:
    """Maximum number of segments that a starting task would load; 0 if the checkpoint is being deleted."""
    storage = LocalStorage(location)
    try:
        records = RecordFiles(storage).read_all({})
        newest = max((i for i, r in records.items() if isinstance(r, CheckpointRecord)), default=None)
        record: Any = records[newest] if newest is not None else None
        table = read_checkpoint(storage, record).table if record is not None else {}
    except SparkCkptError:
        return 0
    return max((len(chain.entries) for chains in table.values() for chain in chains), default=0)


def _rss(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def _entries(pid: int, kind: str) -> float:
    return float(len(os.listdir(f"/proc/{pid}/{kind}")))
