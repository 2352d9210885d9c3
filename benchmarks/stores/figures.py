"""Figures of a run: from Spark's progress reports to named samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmarks.object_store import Request

Samples = Mapping[str, Sequence[float]]
"""Samples of a run, by measure."""


@dataclass(frozen=True)
class Measure:
    """A measured quantity; less is better."""

    title: str
    unit: str


MEASURES: Mapping[str, Measure] = {
    "batch_ms": Measure("whole batch", "ms"),
    "state_ms": Measure("state: updates, removals and commits, sum over all tasks", "ms"),
    "updates_ms": Measure("updates, sum over all tasks", "ms"),
    "removals_ms": Measure("removals, sum over all tasks", "ms"),
    "commit_ms": Measure("commits, sum over all tasks", "ms"),
    "restart_ms": Measure("from the start to the first committed batch", "ms"),
    "fresh_ms": Measure("from the start in a new JVM to the first committed batch", "ms"),
    "written_ratio": Measure("bytes of deltas, merged deltas and bases, per byte changed", ""),
    "state_mb": Measure("memory for the state: growth of the heap after garbage collection, and off-heap", "MB"),
    "heap_bytes": Measure("heap after garbage collection, per key", "bytes"),
    "native_bytes": Measure("off-heap memory, per key", "bytes"),
    "memory_bytes": Measure("memory, per key", "bytes"),
    "requests": Measure("requests to the object store, per batch", "number"),
    "state_requests": Measure("requests to the object store but for Spark's own logs, per batch", "number"),
    "write_requests": Measure("requests billed as writes: puts, listings, deletions of many; per batch", "number"),
    "read_requests": Measure("requests billed as reads, per batch", "number"),
    "coordinator_ms": Measure("coordinator's CPU, per batch", "ms"),
    "rescale_ms": Measure("another number of partitions", "ms"),
    "scan_ms": Measure("load and iterate, by Spark's provider", "ms"),
    "import_ms": Measure("import", "ms"),
    "export_ms": Measure("export", "ms"),
    "import_ratio": Measure("import, relative to load and iterate", ""),
    "export_ratio": Measure("export, relative to load and iterate", ""),
    "heap_peak_bytes": Measure("peak of the heap during the import, garbage included", "bytes"),
    "written_bytes": Measure("written for another number of partitions", "bytes"),
}


@dataclass(frozen=True)
class Batch:
    """A batch with input, as reported by Spark; store times are sums over all tasks.

    Args:
        began: time of the trigger, in seconds since 1970.
        batch_ms: total duration.
        updates_ms: time to process the rows, including the shuffle read.
        removals_ms: time to remove expired rows.
        commit_ms: time to commit.
        rows: rows of state after the batch.
        changed_bytes: bytes of the changes; 0 if the provider does not report them, as only ours does.
        written_bytes: bytes of the changes, and of merged changes and base snapshots; 0 likewise.
    """

    began: float
    batch_ms: float
    updates_ms: float
    removals_ms: float
    commit_ms: float
    rows: int
    changed_bytes: int = 0
    written_bytes: int = 0

    @property
    def state_ms(self) -> float:
        """Total time of the stores."""
        return self.updates_ms + self.removals_ms + self.commit_ms

    @property
    def ended(self) -> float:
        """Time of the commit, in seconds since 1970."""
        return self.began + self.batch_ms / 1000


@dataclass(frozen=True)
class Memory:
    """Memory of a JVM in bytes: heap in use after a collection, and resident memory outside the heap."""

    heap: int
    native: int


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """Parses the JSON of Spark's `StreamingQueryProgress`."""
    operators = progress["stateOperators"]

    def total(name: str) -> int:
        return sum(operator[name] for operator in operators)

    def custom(name: str) -> int:
        return sum(operator.get("customMetrics", {}).get(name, 0) for operator in operators)

    return Batch(
        began=datetime.fromisoformat(progress["timestamp"].replace("Z", "+00:00")).timestamp(),
        batch_ms=progress["batchDuration"],
        updates_ms=total("allUpdatesTimeMs"),
        removals_ms=total("allRemovalsTimeMs"),
        commit_ms=total("commitTimeMs"),
        rows=total("numRowsTotal"),
        changed_bytes=custom("ckptDeltaBytes"),
        written_bytes=custom("ckptDeltaBytes") + custom("ckptBaseBytes"),
    )


def batch_samples(batches: Sequence[Batch]) -> Samples:
    """One sample per batch."""
    names = ("batch_ms", "state_ms", "updates_ms", "removals_ms", "commit_ms")
    return {name: [getattr(batch, name) for batch in batches] for name in names}


def bytes_samples(batches: Sequence[Batch]) -> Samples:
    """Bytes written per byte changed, over all batches."""
    changed = sum(batch.changed_bytes for batch in batches)
    return {"written_ratio": [sum(batch.written_bytes for batch in batches) / changed]} if changed else {}


def growth_samples(before: Memory, after: Memory) -> Samples:
    """Growth of the memory in MB."""
    return {"state_mb": [(after.heap + after.native - before.heap - before.native) / 1e6]}


def memory_samples(few: Memory, many: Memory, keys: int) -> Samples:
    """Growth in bytes per key, where `keys` keys were added between the two readings."""
    heap, native = (many.heap - few.heap) / keys, (many.native - few.native) / keys
    return {"heap_bytes": [heap], "native_bytes": [native], "memory_bytes": [heap + native]}


def request_samples(requests: Sequence[Request], began: float, ended: float, batches: int) -> Samples:
    """Requests per batch among those between two moments, in seconds since 1970."""
    counted = [request for request in requests if began <= request.moment <= ended]
    of_state = [request for request in counted if not request.is_of_log]
    billed = Counter(request.price for request in counted)
    return {
        "requests": [len(counted) / batches],
        "state_requests": [len(of_state) / batches],
        "write_requests": [billed["write"] / batches],
        "read_requests": [billed["read"] / batches],
    }
