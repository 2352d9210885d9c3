"""Verdicts on the cluster, the heap of its executors, and the files of a checkpoint location."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from spark_ckpt.checkpoint.chains import all_entries
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.location.listing import list_completed
from spark_ckpt.storage import LocalStorage
from tests.soak.cluster.executors import live_heap_bytes, uncaught, unexpected_ends
from tests.support.invariants import Findings, inspect
from tests.support.standalone_cluster import StandaloneCluster
from tests.support.waiting import eventually

HEAP_SHARE = 0.1
"""Permitted difference between the live heap and what is counted, as a share of the latter."""

HEAP_SLACK = 48 << 20
"""Permitted growth of an executor's live heap beside state, in bytes: Spark's own, and compiled plans."""

HEAP_SECONDS = 120.0
"""Time in which background work ends and Spark's maintenance unloads stores. The heap fits at some point in it."""

MAX_FILES = 100
"""Files below `ckpt` beside those of the newest checkpoint: records, `_metadata`, and what is to be deleted."""

MERGED_FACTOR = 16
"""Bound of a chain with merges, in `chain.maxDeltas`."""


class Heap:
    """The live heap of all executors, beside what their stores count."""

    def __init__(self, cluster: StandaloneCluster) -> None:
        self._cluster = cluster
        self.base = 0
        """Live heap of an executor that has run every plan and has no state, in bytes."""

    def take_base(self) -> None:
        """Takes the heap as it is now, without state, as the base of later looks."""
        self.base = max(self._each())

    def compare(self, counted: int, when: str) -> tuple[bool, str]:
        """Waits until the heap is what is counted, as background work ends and maintenance unloads.

        Args:
            counted: bytes that all stores count as memory.
            when: the moment, for the message.

        Returns:
            Whether it is, and the figures in words.
        """
        figures = ""

        def fits() -> bool:
            nonlocal figures
            heaps = self._each()
            live = sum(heaps) - self.base * len(heaps)
            figures = f"{when}: {live >> 20} MiB live in {len(heaps)} executors, {counted >> 20} MiB counted"
            return live <= counted * (1 + HEAP_SHARE) + HEAP_SLACK * len(heaps)

        try:
            return eventually(fits, HEAP_SECONDS, poll=2), figures
        except TimeoutError:
            return False, figures

    def _each(self) -> list[int]:
        return [heap for pid in self._cluster.executors() if (heap := live_heap_bytes(pid)) is not None]


def judge_cluster(cluster: StandaloneCluster, driver_log: Path, kills: int) -> list[str]:
    """Lost executors that no kill explains, and uncaught exceptions in the log of any JVM, in words."""
    logs = [log.read_text(errors="replace") for log in cluster.folder.glob("worker-*.log")]
    return unexpected_ends(logs, kills) + uncaught([*cluster.folder.glob("work-*/*/*/stderr"), driver_log])


def _unchanged(storage: LocalStorage) -> tuple[Findings, Sequence[CheckpointRecord]] | None:
    """Findings and records; none if a checkpoint was completed meanwhile, as the last batch of a run may end late."""
    records = list_completed(storage).records
    found = inspect(storage, orphans=True)
    return (found, records) if list_completed(storage).records == records else None


def judge_files(location: Path, max_deltas: int) -> Iterator[str]:
    """What is wrong with the location of a stopped query: damage, a chain or a number of files beyond its bound."""
    storage = LocalStorage(location)
    seen = eventually(lambda: _unchanged(storage), what=f"{location} stays as it is while it is read")
    assert seen is not None
    found, records = seen
    yield from found.violations
    if found.violations or not records:
        return
    table = read_checkpoint(storage, records[-1]).table
    longest = max((len(chain.entries) for chains in table.values() for chain in chains), default=0)
    if longest > MERGED_FACTOR * max_deltas:
        yield f"a chain of {longest} segments"
    named = {entry.path for entry in all_entries(table) if entry.path}
    there = sum(len(names) for _, _, names in os.walk(location / "ckpt"))
    if there > MAX_FILES + 4 * len(named):
        yield f"{there} files below ckpt, {len(named)} of them of the newest checkpoint"
