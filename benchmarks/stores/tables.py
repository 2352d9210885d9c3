"""The summary as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.stores.figures import MEASURES
from benchmarks.stores.providers import OURS, PROVIDERS
from benchmarks.stores.results import Record
from benchmarks.stores.summary import Spread, Summary, Verdict
from benchmarks.stores.workloads import TARGETS


def verdicts(summary: Summary) -> list[Verdict]:
    """Verdicts on all targets with figures."""
    return [found for target in TARGETS if (found := summary.verdict(target)) is not None]


def figures_table(summary: Summary, workload: str) -> Table:
    """Medians and quartiles of each provider."""
    table = Table()
    measures = summary.measures(workload)
    table.add_column("provider")
    for measure in measures:
        table.add_column(f"{_name(measure)}, {MEASURES[measure].unit}", justify="right")
    for name in summary.providers(workload):
        cells = [_cell(summary.figure(workload, name, measure)) for measure in measures]
        table.add_row(PROVIDERS[name].title, *cells, style="bold" if name == OURS.name else None)
    return table


def verdicts_table(found: Iterable[Verdict]) -> Table:
    """The targets next to the measured values."""
    table = Table()
    for heading in ("workload", "measure", "measured", "spread", "at most", "against", ""):
        table.add_column(heading, justify="right" if heading in ("measured", "spread", "at most") else "left")
    for one in found:
        unit = MEASURES[one.target.measure].unit if one.rival is None else ""
        table.add_row(
            one.target.workload,
            _name(one.target.measure),
            f"{short(one.measured.median)} {unit}".rstrip(),
            f"{short(one.measured.low)} to {short(one.measured.high)}",
            f"{one.target.limit:g} {unit}".rstrip(),
            one.rival or "",
            "[green]met[/]" if one.met else "[red]missed[/]",
        )
    return table


def warnings(summary: Summary, records: Sequence[Record]) -> Iterator[str]:
    """Reasons to trust the figures less."""
    for workload, rows in summary.disagreements().items():
        yield f"{workload}: the providers end with different numbers of state rows: {rows}"
    busy = [r for r in records if r.load > r.machine["cores"]]
    if busy:
        yield f"{len(busy)} runs started on a busy machine, with a load of up to {max(r.load for r in busy)}"
    yield from differing_machines([record.machine for record in records])


def differing_machines(machines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Warning about runs on different machines, or with different versions or settings, if there are any."""
    keys = {key for machine in machines for key in machine}
    changed = sorted(key for key in keys if len({machine.get(key) for machine in machines}) > 1)
    if changed:
        yield f"runs differ in {', '.join(changed)}"


def to_json(summary: Summary, records: Sequence[Record]) -> dict[str, Any]:
    """The whole summary, machine-readable."""
    return {
        "machine": dict(records[-1].machine) if records else {},
        "figures": [
            {"workload": workload, "provider": provider, "measure": measure, **asdict(figure)}
            for workload in summary.workloads()
            for provider in summary.providers(workload)
            for measure in summary.measures(workload)
            if (figure := summary.figure(workload, provider, measure)) is not None
        ],
        "targets": [
            {**asdict(one.target), "measured": asdict(one.measured), "rival": one.rival, "met": one.met}
            for one in verdicts(summary)
        ],
        "warnings": list(warnings(summary, records)),
    }


def _name(measure: str) -> str:
    return measure.removesuffix(f"_{MEASURES[measure].unit}")


def _cell(figure: Spread | None) -> str:
    if figure is None:
        return ""
    if figure.count == 1:
        return short(figure.median)
    return f"{short(figure.median)} ({short(figure.low)} to {short(figure.high)})"


def short(number: float) -> str:
    """A figure for a table: whole from 100 on, else with three digits."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
