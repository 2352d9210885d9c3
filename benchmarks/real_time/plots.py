"""Plot of the distribution of latencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.stores import plots
from benchmarks.stores.providers import PROVIDERS
from benchmarks.stores.results import Record
from benchmarks.stores.summary import Summary

_PANELS = {"latency_ms": "all rows", "within_ms": "rows within a batch", "boundary_ms": "rows sent in a pause"}


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draws a plot per query: the share of rows slower than a latency, by provider; returns the files."""
    titles = {record.run.workload.name: record.run.workload.title for record in records}
    summary, drawn = Summary(records), []
    for workload in summary.workloads():
        figure = Figure(figsize=(14, 4.5), layout="constrained")
        panels = figure.subplots(1, len(_PANELS), sharey=True)
        for axes, (measure, title) in zip(panels, _PANELS.items(), strict=True):
            for provider in summary.providers(workload):
                samples = sorted(
                    max(sample, 1.0)  # the axis is logarithmic
                    for record in records
                    if (record.run.workload.name, record.run.provider) == (workload, provider)
                    for sample in record.samples.get(measure, ())
                )
                slower = [1 - place / len(samples) for place in range(len(samples))]
                axes.step(samples, slower, color=plots.COLOURS[provider], label=PROVIDERS[provider].title)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(title, fontsize=9, loc="left")
            axes.set_xlabel("latency, ms")
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("share of rows at least as slow")
        panels[0].legend(fontsize=8)
        figure.suptitle(titles[workload], fontsize=11)
        drawn.append(folder / f"{workload}.png")
        plots.save(figure, drawn[-1])
    return drawn
