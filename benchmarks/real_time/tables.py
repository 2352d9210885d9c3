"""The summary as tables and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.real_time.latency import percentile
from benchmarks.stores.providers import OURS, PROVIDERS
from benchmarks.stores.results import Record
from benchmarks.stores.summary import Summary
from benchmarks.stores.tables import warnings

TITLES = {
    "latency_ms": "all rows",
    "within_ms": "rows within a batch",
    "boundary_ms": "rows sent in a pause",
    "pause_ms": "pause between batches",
    "end_ms": "of it up to the commit",
}
"""Measures, see `benchmarks.real_time.latency.samples_of`."""

COLUMNS = ("p50", "p99", "max")


def figures(records: Iterable[Record], workload: str, provider: str, measure: str) -> dict[str, float]:
    """Number of samples over all rounds, their median and percentiles; without samples the number alone."""
    runs = [r for r in records if (r.run.workload.name, r.run.provider) == (workload, provider)]
    samples = [sample for record in runs for sample in record.samples.get(measure, ())]
    if not samples:
        return {"count": 0}
    return {
        "count": len(samples),
        "p50": statistics.median(samples),  # as in the ratios
        "p99": percentile(samples, 0.99),
        "max": max(samples),
    }


def figures_table(records: Sequence[Record], workload: str) -> Table:
    """Percentiles of each measure by provider, and the ratios of the medians with the range of the rounds."""
    summary, table = Summary(records), Table("", "provider")
    for column in ("count", *(f"{name}, ms" for name in COLUMNS), "ratio of medians"):
        table.add_column(column, justify="right")
    for measure, title in TITLES.items():
        for name in summary.providers(workload):
            found = figures(records, workload, name, measure)
            cells = [f"{found[column]:,.0f}" if column in found else "" for column in ("count", *COLUMNS)]
            ratio = None if name == OURS.name else summary.ratio(measure, (workload, OURS.name), (workload, name))
            last = "" if ratio is None else f"{ratio.median:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
            table.add_row(title, PROVIDERS[name].title, *cells, last, style="bold" if name == OURS.name else None)
        table.add_section()
    return table


def to_json(records: Sequence[Record]) -> dict[str, Any]:
    """The whole summary, machine-readable."""
    summary = Summary(records)
    return {
        "machine": dict(records[-1].machine) if records else {},
        "figures": [
            {"workload": workload, "provider": name, "measure": measure, **figures(records, workload, name, measure)}
            for workload in summary.workloads()
            for name in summary.providers(workload)
            for measure in TITLES
        ],
        "ratios": [
            {"workload": workload, "measure": measure, "rival": name, **asdict(ratio)}
            for workload in summary.workloads()
            for measure in TITLES
            for name in summary.providers(workload)
            if name != OURS.name
            and (ratio := summary.ratio(measure, (workload, OURS.name), (workload, name))) is not None
        ],
        "loads": [record.load for record in records],
        "warnings": list(warnings(summary, records)),
    }
