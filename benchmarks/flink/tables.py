"""The comparison as a table and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from benchmarks.flink.running import Round
from benchmarks.nexmark.plan import Record

OURS = "spark-ckpt"
"""Name of Structured Streaming with our provider."""


@dataclass(frozen=True)
class Figures:
    """Figures of a system on a query: medians, and the range of the throughput.

    Args:
        events_s: events per second; `low` and `high` are the slowest and the fastest round.
        low: see there.
        high: see there.
        cpu_s: CPU seconds per million events.
        checkpoint_ms: time from one completed checkpoint's begin to its end; ours is the whole batch.
        checkpoint_mb: MB that a checkpoint writes; None where it is not measured.
        stored_mb: MB of the state in the last checkpoint; of ours, all files of the location. None without checkpoints.
    """

    events_s: float
    low: float
    high: float
    cpu_s: float
    checkpoint_ms: float | None
    checkpoint_mb: float | None
    stored_mb: float | None


def of_flink(rounds: Sequence[Round], events: int) -> Figures:
    """Figures of rounds over so many events."""
    speeds = [events / one.seconds for one in rounds]
    durations = [ms for one in rounds for ms in one.checkpoint_ms]
    last = [one.state_bytes[-1] for one in rounds if one.state_bytes]
    written = [size for one in rounds for size in one.checkpoint_bytes]
    return Figures(
        statistics.median(speeds),
        min(speeds),
        max(speeds),
        statistics.median(one.cpu_seconds for one in rounds) / events * 1e6,
        statistics.median(durations) if durations else None,
        statistics.median(written) / 1e6 if written else None,
        statistics.median(last) / 1e6 if last else None,
    )


def of_ours(records: Sequence[Record]) -> Figures:
    """Figures of ours from the records of `benchmarks.nexmark`."""

    def median(measure: str) -> float:
        return statistics.median(sample for one in records for sample in one.samples[measure])

    speeds = [sample for one in records for sample in one.samples["events_s"]]
    return Figures(
        statistics.median(speeds),
        min(speeds),
        max(speeds),
        median("cpu_s"),
        median("batch_ms"),
        None,
        median("stored_mb"),
    )


def table(found: Mapping[str, Mapping[str, Figures]]) -> Table:
    """A row per query and system."""
    made = Table()
    for title in ("query", "system", "events/s", "range", "CPU s per million", "checkpoint, ms", "written, MB"):
        made.add_column(title, justify="left" if title in ("query", "system") else "right")
    made.add_column("stored, MB", justify="right")
    for query, systems in found.items():
        for system, one in systems.items():
            made.add_row(
                query,
                system,
                f"{one.events_s:,.0f}",
                f"{one.low:,.0f} to {one.high:,.0f}",
                f"{one.cpu_s:.2f}",
                _number(one.checkpoint_ms, 0),
                _number(one.checkpoint_mb, 2),
                _number(one.stored_mb, 1),
                style="bold" if system == OURS else None,
            )
    return made


def to_json(found: Mapping[str, Mapping[str, Figures]], machine: Mapping[str, Any]) -> dict[str, Any]:
    """All figures, machine-readable."""
    rows = [
        {"query": query, "system": system, **vars(one)}
        for query, systems in found.items()
        for system, one in systems.items()
    ]
    return {"machine": dict(machine), "figures": rows}


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
