"""The workloads, and the targets for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmarks.stores.providers import FLOOR, OTHER_CODECS, OURS

LOAD_ROWS = 1_000_000
"""Maximum number of keys loaded in one batch."""

MILLION = 1_000_000
BEST_BUILT_IN = "built-in"
IN_MEMORY = (OURS.name, "hdfs", "rocksdb", "rocksdb-changelog", FLOOR.name)
"""Providers of the workloads whose state fits into memory."""

BEYOND_MEMORY = (OURS.name, "rocksdb", "rocksdb-changelog", "rocksdb-ids")
"""Providers that can have more state than memory."""

BY_CODEC = (OURS.name, *(provider.name for provider in OTHER_CODECS))
"""Our provider with each compression."""


@dataclass(frozen=True)
class Workload:
    """A query over prepared input, with the same number of rows in each measured batch.

    Args:
        name: name in results and on the command line.
        title: name for readers.
        kind: subject of the measurement: batches, bytes written, restarts, short runs of a JVM each, memory, or our
            coordinator without Spark.
        query: name of the query, see `benchmarks.stores.queries`.
        keys: rows of state; for a join, per side.
        changed: rows of input per batch; for a join, per side.
        partitions: partitions of the stateful stages.
        warmups: unmeasured batches after the load.
        batches: measured batches, or batches before the first restart.
        restarts: measured restarts; for short runs, one in the same JVM and one in another.
        skew: exponent of a Zipf distribution of the changed keys; None for a uniform one.
        memory_mb: limit of the memory for state, in MiB; None for none.
        latency_ms: latency per request to the object store that holds the checkpoints; None for the local disk.
        providers: names of the participating providers.
    """

    name: str
    title: str
    kind: Literal["batches", "bytes", "restart", "short", "memory", "coordinator"] = "batches"
    query: Literal["count", "totals", "join", "dedup", "session"] = "count"
    keys: int = MILLION
    changed: int = 10_000
    partitions: int = 8
    warmups: int = 10
    batches: int = 20
    restarts: int = 0
    skew: float | None = None
    memory_mb: int | None = None
    latency_ms: int | None = None
    providers: tuple[str, ...] = IN_MEMORY

    def __post_init__(self) -> None:
        if not 0 < self.changed <= self.keys:
            raise ValueError(f"{self.name}: {self.changed} changed rows of {self.keys} keys")

    @classmethod
    def of_json(cls, fields: Mapping[str, Any]) -> Workload:
        """The workload serialized with `dataclasses.asdict`."""
        return cls(**{**fields, "providers": tuple(fields["providers"])})

    @property
    def loads(self) -> tuple[int, ...]:
        """Number of keys in each of the first batches. Memory is compared with that after the first one."""
        first = [self.keys // 100] if self.kind == "memory" else []
        rest = self.keys - sum(first)
        count = math.ceil(rest / LOAD_ROWS)
        return (*first, *(rest * (n + 1) // count - rest * n // count for n in range(count)))

    @property
    def changes(self) -> int:
        """Number of input batches after the load."""
        return self.warmups + self.batches + self.restarts

    def scaled(self, scale: float, batches: int | None) -> Workload:
        """The workload with scaled keys and changes, and optionally another number of measured batches."""
        if self.kind == "coordinator":
            return self if batches is None else replace(self, batches=batches)
        changed = max(round(self.changed * scale), 10)
        return replace(
            self,
            keys=max(round(self.keys * scale), 10 * changed if self.changed * 10 <= self.keys else changed, 1000),
            changed=changed,
            memory_mb=None if self.memory_mb is None else max(round(self.memory_mb * scale), 1),
            batches=self.batches if batches is None else batches,
            warmups=self.warmups if batches is None else min(self.warmups, batches),
        )


def _all() -> Iterator[Workload]:
    yield Workload("count-1", "count, 1 % of 1 M keys changed")
    yield Workload("count-50", "count, 50 % of 1 M keys changed", changed=500_000, warmups=5, batches=10)
    yield Workload("join", "stream-stream join", query="join", keys=200_000)
    yield Workload("dedup", "de-duplication with expiry", query="dedup", keys=500_000)
    yield Workload("session", "session windows", query="session", keys=200_000)
    for millions in (4, 8):
        yield Workload(f"keys-{millions}m", f"count, 10,000 of {millions} M keys changed", keys=millions * MILLION)
    for partitions in (64, 200):
        yield Workload(
            f"partitions-{partitions}", f"count, 1 % of 1 M keys, {partitions} partitions", partitions=partitions
        )
    yield from _beyond_memory()
    for millions, warmups, batches in ((1, 150, 250), (8, 800, 800), (32, 3200, 3200)):
        yield Workload(
            f"bytes-{millions}m",
            f"bytes written, 10,000 of {millions} M keys changed",
            kind="bytes",
            query="totals",
            keys=millions * MILLION,
            warmups=warmups,
            batches=batches,
            providers=(OURS.name,),
        )
    for name, keys, latency in (("restart", 1, None), ("restart-8m", 8, None), ("restart-s3-30ms", 1, 30)):
        yield Workload(
            name,
            f"restart after 20 batches, {keys} M keys" + (f", S3 with {latency} ms a request" if latency else ""),
            kind="restart",
            keys=keys * MILLION,
            warmups=0,
            restarts=5,
            latency_ms=latency,
        )
    yield Workload(
        "short",
        "short runs: 20 batches of a young JVM, 1 M keys, a restart in it and one in another",
        kind="short",
        partitions=4,
        warmups=0,
        restarts=2,
    )
    yield from _compressed()
    yield Workload("memory", "memory of 1 M keys", kind="memory", warmups=0, batches=5)
    for partitions, latency, batches in ((8, 30, 10), (64, 30, 10), (8, 0, 50), (64, 0, 10), (200, 0, 50)):
        yield Workload(
            f"s3-{partitions}-{latency}ms",
            f"count, S3 with {latency} ms a request, {partitions} partitions",
            partitions=partitions,
            warmups=3,
            batches=batches,
            latency_ms=latency,
            # With 200 partitions, a batch takes minutes with Spark's own providers.
            providers=IN_MEMORY if partitions < 200 else (OURS.name,),
        )
    yield Workload(
        "coordinator",
        "coordinator, 200 partitions x 4 stores",
        kind="coordinator",
        partitions=200,
        batches=40,
        providers=(OURS.name,),
    )


def _beyond_memory() -> Iterator[Workload]:
    """Keys of 16 and values of 40 bytes: twice the limit as plain bytes, and more with the index of the keys."""
    keys, memory_mb = 40 * MILLION, 1024
    for name, title, skew in (("uniform", "uniform", None), ("zipf", "Zipf 0.99", 0.99)):
        yield Workload(
            f"spill-{name}",
            f"40 M keys in 1 GiB, 10,000 changed, {title}",
            query="totals",
            keys=keys,
            skew=skew,
            memory_mb=memory_mb,
            providers=BEYOND_MEMORY,
        )
    yield Workload(
        "spill-window",
        "40 M keys in 1 GiB, 5,000 new and as many expired",
        query="dedup",
        keys=keys,
        memory_mb=memory_mb,
        providers=BEYOND_MEMORY,
    )


def _compressed() -> Iterator[Workload]:
    """Keys and values as in `bytes-1m`, where compression finds something, and as in `count-1`."""
    yield Workload(
        "codecs-bytes",
        "bytes written with each compression, 10,000 of 1 M keys changed",
        kind="bytes",
        query="totals",
        warmups=40,
        batches=60,
        providers=BY_CODEC,
    )
    yield Workload("codecs-count", "count with each compression, 1 % of 1 M keys changed", providers=BY_CODEC)
    yield Workload(
        "codecs-restart",
        "restart with each compression, 8 M keys",
        kind="restart",
        keys=8 * MILLION,
        warmups=0,
        restarts=5,
        providers=BY_CODEC,
    )


WORKLOADS: Mapping[str, Workload] = {workload.name: workload for workload in _all()}
"""Workloads by name, in execution order."""

GROWTH: Mapping[str, float] = {"count-1": 1, "keys-4m": 4, "keys-8m": 8}
"""Workloads that differ only in the number of keys, in millions."""

BYTES: Mapping[str, float] = {"bytes-1m": 1, "bytes-8m": 8, "bytes-32m": 32}
"""Workloads about bytes written by the number of keys, in millions."""

PARTITIONS: Mapping[str, float] = {"count-1": 8, "partitions-64": 64, "partitions-200": 200}
"""Workloads that differ only in the number of partitions."""


@dataclass(frozen=True)
class Target:
    """Target for our provider.

    Args:
        workload: name of the workload.
        measure: name of the measure, see `benchmarks.stores.figures`.
        limit: highest ratio, or highest figure.
        against: divisor of the figure: the best of Spark's own providers in the same rounds, ours in another workload
            (its name), or None.
    """

    workload: str
    measure: str
    limit: float
    against: str | None = BEST_BUILT_IN


TARGETS = (
    Target("count-1", "state_ms", 0.24),
    Target("count-1", "batch_ms", 0.66),
    Target("count-50", "state_ms", 0.40),
    Target("count-50", "batch_ms", 0.50),
    Target("spill-uniform", "batch_ms", 0.80),
    Target("spill-uniform", "state_ms", 0.80),
    Target("spill-zipf", "batch_ms", 0.50),
    Target("spill-zipf", "state_ms", 0.35),
    Target("spill-window", "batch_ms", 0.35),
    Target("spill-window", "state_ms", 0.20),
    Target("bytes-1m", "written_ratio", 5, against=None),
    Target("bytes-8m", "written_ratio", 6, against=None),
    Target("bytes-32m", "written_ratio", 8, against=None),
    *(
        Target(name, measure, limit)
        for name in ("join", "dedup", "session")
        for measure, limit in (("state_ms", 0.50), ("batch_ms", 0.90))
    ),
    Target("s3-8-30ms", "batch_ms", 0.35),
    Target("s3-64-30ms", "batch_ms", 0.10),
    Target("s3-8-0ms", "state_requests", 6, against=None),
    Target("s3-200-0ms", "state_requests", 6, against=None),
    Target("keys-8m", "state_ms", 1.2, against="count-1"),
    Target("keys-8m", "batch_ms", 1.15, against="count-1"),
    Target("restart", "restart_ms", 0.30),
    Target("restart-8m", "restart_ms", 0.30),
    Target("short", "state_ms", 0.30),
    Target("short", "batch_ms", 0.40),
    Target("short", "restart_ms", 0.45),
    Target("restart-s3-30ms", "restart_ms", 0.15),
    Target("coordinator", "coordinator_ms", 40, against=None),
)
