"""Plots of the summary that need no explanatory text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.stores.figures import MEASURES
from benchmarks.stores.providers import FLOOR, OURS, PROVIDERS
from benchmarks.stores.summary import Summary, Verdict
from benchmarks.stores.tables import verdicts
from benchmarks.stores.workloads import BEST_BUILT_IN, BYTES, GROWTH, PARTITIONS, TARGETS, WORKLOADS

COLOURS: Mapping[str, str] = {
    OURS.name: "#c2410c",
    "ckpt-none": "#ea580c",
    "ckpt-zstd": "#f59e0b",
    "hdfs": "#1d4ed8",
    "rocksdb": "#15803d",
    "rocksdb-changelog": "#65a30d",
    "rocksdb-ids": "#0f766e",
    FLOOR.name: "#9ca3af",
}
GOOD, BAD = "#15803d", "#b91c1c"


def draw(summary: Summary, folder: Path) -> list[Path]:
    """Draws the plots with data; returns their files."""
    figures: Mapping[str, Callable[[], Figure | None]] = {
        "targets": lambda: _targets([v for v in verdicts(summary) if v.rival is not None]),
        "batches": lambda: _bars(summary, "batch_ms"),
        "state": lambda: _bars(summary, "state_ms"),
        "restart": lambda: _bars(summary, "restart_ms"),
        "memory": lambda: _bars(summary, "memory_bytes"),
        "requests": lambda: _bars(summary, "requests"),
        "coordinator": lambda: _bars(summary, "coordinator_ms"),
        "bytes": lambda: _line(summary, BYTES, "written_ratio", "keys in the state, millions"),
        "growth": lambda: _lines(summary, GROWTH, "keys in the state, millions", "10,000 keys changed in each batch"),
        "partitions": lambda: _lines(summary, PARTITIONS, "partitions", "1 M keys, 10,000 changed in each batch"),
    }
    drawn = []
    for name, make in figures.items():
        figure = make()
        if figure is not None:
            path = folder / f"{name}.png"
            save(figure, path)
            drawn.append(path)
    return drawn


def save(figure: Figure, path: Path) -> None:
    """Writes a plot and frees its memory."""
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)


def rescaling(summary: Summary, points: Mapping[str, float], title: str) -> Figure:
    """Time and bytes of each provider over the workloads' number of keys; all axes are logarithmic."""
    figure, panels = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for axes, measure in zip(panels, ("rescale_ms", "written_bytes"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        for x, y, label, colour in _draw_lines(axes, summary, points, measure):
            axes.text(x, y, label, color=colour, va="center", fontsize=8)
        axes.set_xlim(right=max(points.values()) * 4)
        axes.set_xlabel("keys in the state")
        axes.set_ylabel(MEASURES[measure].unit)
        axes.set_title(_title(measure), fontsize=9, loc="left")
        _bare(axes)
    figure.suptitle(f"{title} (band: interquartile range)", fontsize=11)
    return figure


def _targets(found: Sequence[Verdict]) -> Figure | None:
    """A bar per ratio, with a mark at its limit."""
    if not found:
        return None
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(found) + 1.6))
    for place, one in enumerate(found):
        colour, ratio, limit = GOOD if one.met else BAD, one.measured, one.target.limit
        axes.barh(place, ratio.median, height=0.6, color=colour, alpha=0.75)
        axes.plot([ratio.low, ratio.high], [place, place], color="black", linewidth=1.5)
        axes.plot([limit, limit], [place - 0.42, place + 0.42], color="black", linewidth=3)
        end = max(ratio.high, ratio.median, limit)
        best = ", the best built-in" if one.target.against == BEST_BUILT_IN else ""
        label = f" {ratio.median:.2f} of {one.rival}{best}; at most {limit:g}"
        axes.text(end, place, label, va="center", fontsize=8, color=colour)
    axes.axvline(1, color="grey", linewidth=0.8, linestyle=":")
    labels = [f"{WORKLOADS[v.target.workload].title}\n{_measure_title(v.target.measure)}" for v in found]
    axes.set_yticks(range(len(found)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.9 * max(1.2, *(max(v.measured.high, v.measured.median) for v in found)))
    axes.set_xlabel(
        "our time as a share of the rival's (bar: median; thin line: range of the rounds; thick mark: target)"
    )
    axes.set_title("spark-ckpt against its targets (green: met; shorter is better)", loc="left", fontsize=10)
    _bare(axes)
    return figure


def _bars(summary: Summary, measure: str) -> Figure | None:
    """A panel per workload with this measure, with a bar per provider."""
    workloads = [name for name in summary.workloads() if measure in summary.measures(name)]
    if not workloads:
        return None
    columns = min(len(workloads), 3)
    rows = -(-len(workloads) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(5 * columns, 2.3 * rows), squeeze=False, layout="constrained")
    for axes in grid.flat[len(workloads) :]:
        axes.set_visible(False)
    for axes, workload in zip(grid.flat, workloads, strict=False):
        _panel(axes, summary, workload, measure)
    figure.suptitle(f"{_title(measure)} ({MEASURES[measure].unit}; thin line: interquartile range)", fontsize=11)
    return figure


def _panel(axes: Axes, summary: Summary, workload: str, measure: str) -> None:
    names = [name for name in summary.providers(workload) if summary.figure(workload, name, measure) is not None]
    longest = 0.0
    for place, name in enumerate(names):
        figure = summary.figure(workload, name, measure)
        assert figure is not None
        axes.barh(place, figure.median, height=0.65, color=COLOURS[name])
        axes.plot([figure.low, figure.high], [place, place], color="black", linewidth=1)
        end = max(figure.high, figure.median, 0)
        axes.text(end, place, f" {figure.median:,.0f}", va="center", fontsize=8)
        longest = max(longest, end)
    axes.set_yticks(range(len(names)), [PROVIDERS[name].title for name in names], fontsize=8)
    axes.invert_yaxis()
    for target in TARGETS:
        if (target.workload, target.measure) == (workload, measure):
            allowed = summary.allowed(target)
            if allowed is not None:
                axes.axvline(allowed, color=COLOURS[OURS.name], linestyle="--", linewidth=1.2)
                axes.text(allowed, len(names) - 0.4, " our target", color=COLOURS[OURS.name], va="bottom", fontsize=7)
                longest = max(longest, allowed)
    axes.set_xlim(right=longest * 1.2 or 1)
    axes.set_title(WORKLOADS[workload].title, fontsize=9, loc="left")
    axes.set_xlabel(MEASURES[measure].unit, fontsize=8)
    axes.tick_params(axis="x", labelsize=7)
    _bare(axes)


def _lines(summary: Summary, points: Mapping[str, float], axis: str, title: str) -> Figure | None:
    """Batch time and state time of each provider over a series of workloads."""
    there = [name for name in points if name in summary.workloads()]
    if len(there) < 2:
        return None
    figure, panels = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    for axes, measure in zip(panels, ("batch_ms", "state_ms"), strict=True):
        ends = _draw_lines(axes, summary, {name: points[name] for name in there}, measure)
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, max(points[name] for name in there) * 1.4)
        axes.set_xticks([points[name] for name in there])
        _label_ends(axes, ends)
        axes.set_xlabel(axis)
        axes.set_ylabel(f"{_measure_title(measure)}, {MEASURES[measure].unit}")
        _bare(axes)
    figure.suptitle(f"{title} (band: interquartile range)", fontsize=11)
    return figure


def _line(summary: Summary, points: Mapping[str, float], measure: str, axis: str) -> Figure | None:
    """One measure of each provider over a series of workloads, with our targets."""
    there = {name: x for name, x in points.items() if name in summary.workloads()}
    if len(there) < 2:
        return None
    figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
    ends = _draw_lines(axes, summary, there, measure)
    limits = [t.limit for name in there for t in TARGETS if (t.workload, t.measure) == (name, measure)]
    axes.plot(list(there.values()), limits, color="black", linestyle="--", linewidth=1, label="target: at most")
    axes.legend(frameon=False, fontsize=8)
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, max(there.values()) * 1.4)
    axes.set_xticks(list(there.values()))
    _label_ends(axes, ends)
    axes.set_xlabel(axis)
    axes.set_title(_title(measure), fontsize=9, loc="left")
    _bare(axes)
    return figure


def _draw_lines(
    axes: Axes, summary: Summary, points: Mapping[str, float], measure: str
) -> list[tuple[float, float, str, str]]:
    """A line per provider with this measure; returns the end, label and colour of each line."""
    ends = []
    for provider in PROVIDERS:
        found = [(x, f) for name, x in points.items() if (f := summary.figure(name, provider, measure)) is not None]
        if not found:
            continue
        xs, spreads = [x for x, _ in found], [spread for _, spread in found]
        colour = COLOURS[provider]
        axes.plot(xs, [s.median for s in spreads], marker="o", color=colour)
        axes.fill_between(xs, [s.low for s in spreads], [s.high for s in spreads], color=colour, alpha=0.15)
        ends.append((xs[-1], spreads[-1].median, f"  {PROVIDERS[provider].title}", colour))
    return ends


def _label_ends(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Labels the lines at their ends, shifted apart where they would overlap."""
    least, last = axes.get_ylim()[1] * 0.05, float("-inf")
    for x, y, label, colour in sorted(ends, key=lambda end: end[1]):
        last = max(y, last + least)
        axes.text(x, last, label, color=colour, va="center", fontsize=8)


def _measure_title(measure: str) -> str:
    return {"batch_ms": "whole batch", "state_ms": "state, sum over all tasks", "restart_ms": "first batch"}[measure]


def _title(measure: str) -> str:
    title = MEASURES[measure].title
    return title[0].upper() + title[1:]


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
