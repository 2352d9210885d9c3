"""The figures as tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.nexmark.figures import MEASURES, Figures
from benchmarks.nexmark.plan import COMPETITORS, Record
from benchmarks.nexmark.queries import LEFT_OUT, QUERIES
from benchmarks.stores.providers import OURS
from benchmarks.stores.summary import Spread
from benchmarks.stores.tables import differing_machines, short

RATIOS = ("events_s", "cpu_s", "batch_ms", "restart_ms", "stored_mb")
"""Measures of the table of ratios."""

_QUIET = 0.3
"""Busy cores below which a machine is quiet."""


def figures_table(figures: Figures, query: str) -> Table:
    """Medians and quartiles of each provider on a query."""
    table = Table()
    table.add_column("provider")
    for measure in MEASURES.values():
        table.add_column(f"{measure.title.partition(':')[0]}, {measure.unit}", justify="right")
    for name in figures.providers(query):
        cells = [_cell(figures.spread(query, name, measure)) for measure in MEASURES]
        table.add_row(COMPETITORS[name].title, *cells, style="bold" if name == OURS.name else None)
    return table


def ratios_table(figures: Figures) -> Table:
    """Ours relative to the best built-in provider: throughput more is better, all else less."""
    table = Table()
    table.add_column("query")
    for measure in RATIOS:
        table.add_column(MEASURES[measure].title.partition(":")[0].partition(" of ")[0], justify="right")
    for query in figures.queries():
        cells = [_ratio(figures.ratio(query, measure)) for measure in RATIOS]
        table.add_row(f"{query}: {QUERIES[query].title}", *cells, style=None if QUERIES[query].stateful else "dim")
    means = [figures.mean_ratio(measure) for measure in RATIOS]
    table.add_row("geometric mean", *("" if mean is None else f"{mean:.2f}" for mean in means), style="bold")
    return table


def warnings(figures: Figures, records: Sequence[Record]) -> Iterator[str]:
    """Reasons to trust the figures less."""
    yield from figures.differing_answers()
    busy = {one.run.query for one in records if one.load > _QUIET}
    if busy:
        most = max(one.load for one in records)
        yield f"other work kept up to {most} cores busy when these queries began: {', '.join(sorted(busy))}"
    yield from differing_machines([record.machine for record in records])


def to_json(figures: Figures, records: Sequence[Record]) -> dict[str, Any]:
    """All figures, machine-readable."""
    return {
        "machine": dict(records[-1].machine) if records else {},
        "figures": [
            {"query": query, "provider": provider, "measure": measure, **asdict(found)}
            for query in figures.queries()
            for provider in figures.providers(query)
            for measure in MEASURES
            if (found := figures.spread(query, provider, measure)) is not None
        ],
        "ratios": [
            {"query": query, "measure": measure, "rival": figures.best_built_in(query, measure), **asdict(found)}
            for query in figures.queries()
            for measure in RATIOS
            if (found := figures.ratio(query, measure)) is not None
        ],
        "mean_ratios": {measure: figures.mean_ratio(measure) for measure in RATIOS},
        "forms": {query: QUERIES[query].form for query in figures.queries() if QUERIES[query].form},
        "left_out": dict(LEFT_OUT),
        "warnings": list(warnings(figures, records)),
    }


def _ratio(found: Spread | None) -> str:
    if found is None:
        return ""
    return f"{found.median:.2f}" + (f" ({found.low:.2f} to {found.high:.2f})" if found.count > 1 else "")


def _cell(figure: Spread | None) -> str:
    if figure is None:
        return ""
    if figure.low == figure.high:
        return short(figure.median)
    return f"{short(figure.median)} ({short(figure.low)} to {short(figure.high)})"
