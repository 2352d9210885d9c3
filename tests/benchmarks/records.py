"""Synthetic records of runs."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.stores.plan import Run
from benchmarks.stores.results import Record
from benchmarks.stores.workloads import WORKLOADS


def record(
    workload: str,
    provider: str,
    number: int = 0,
    *,
    rows: int = 1000,
    load: float = 0.1,
    commit: str = "abc",
    **samples: Sequence[float],
) -> Record:
    run = Run(WORKLOADS[workload], provider, number)
    return Record(run, samples, rows, load, {"cores": 2, "commit": commit})
