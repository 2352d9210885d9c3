"""Generator of the pictures with figures of benchmarks, from the data in docs/plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from benchmarks.nexmark.queries import QUERIES
from benchmarks.stores.providers import PROVIDERS

DOCS = Path(__file__).resolve().parent
NEXMARK = DOCS / "plots" / "nexmark.json"
"""`summary.json` of a run of `make bench-nexmark`."""
WORKLOADS = DOCS / "plots" / "workloads.json"
"""Medians of `make bench` as the table of docs/comparison.md shows them, in milliseconds by provider."""
FLINK = DOCS / "plots" / "flink.json"
"""`summary.json` of a run of `make bench-flink`."""

SCALE = DOCS / "plots" / "scale.json"
"""Figures of a run of `make bench-scale`."""

_OURS, _RIVAL = "#c2410c", "#6b7280"
_SYSTEMS = (_OURS, "#2563eb", "#93c5fd")


@dataclass(frozen=True)
class SpeedUp:
    """Throughput on a query relative to the best of Spark's own providers.

    Args:
        query: name of the query.
        rival: title of that provider.
        median: ratio of the medians.
        low: lowest ratio of a round.
        high: highest ratio of a round.
    """

    query: str
    rival: str
    median: float
    low: float
    high: float


def speed_ups(data: Mapping[str, Any]) -> list[SpeedUp]:
    """Speed-ups of all queries with state, in the order of Nexmark."""
    return [
        SpeedUp(one["query"], PROVIDERS[one["rival"]].title, one["median"], one["low"], one["high"])
        for one in data["ratios"]
        if one["measure"] == "events_s" and QUERIES[one["query"]].stateful
    ]


def faster(data: Mapping[str, Any]) -> list[SpeedUp]:
    """Speed-ups on the workloads of `make bench`, batches and restarts: the fastest rival's time over ours."""
    made = []
    for one in data["figures"]:
        if one["measure"] != "state":
            rivals = {name: value for name, value in one.items() if name in PROVIDERS and name != "ckpt"}
            rival = min(rivals, key=lambda name: rivals[name])
            ratio = rivals[rival] / one["ckpt"]
            made.append(SpeedUp(one["workload"], PROVIDERS[rival].title, ratio, ratio, ratio))
    return made


def draw(found: Sequence[SpeedUp], title: str, label: str) -> Figure:
    """A bar per query or workload, with the range of the rounds."""
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(found) + 1.5), layout="constrained")
    for place, one in enumerate(found):
        axes.barh(place, one.median, height=0.6, color=_OURS, alpha=0.85)
        axes.plot([one.low, one.high], [place, place], color="black", linewidth=1.5)
        axes.text(one.high, place, f"  {one.median:.2f} times {one.rival}", va="center", fontsize=8)
    axes.axvline(1, color=_RIVAL, linewidth=1.2, linestyle="--")
    axes.set_yticks(range(len(found)), [one.query for one in found])
    axes.invert_yaxis()
    axes.set_xlim(0, max(one.high for one in found) * 1.6)
    axes.set_xlabel(label)
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def nexmark_picture(data: Mapping[str, Any]) -> Figure:
    """Speed-ups on Nexmark."""
    mean = data["mean_ratios"]["events_s"]
    title = f"Nexmark on Spark: spark-ckpt, {mean:.2f} in the geometric mean"
    label = "times the events a second of the fastest built-in provider (black: range of the rounds)"
    return draw(speed_ups(data), title, label)


def flink_picture(data: Mapping[str, Any]) -> Figure:
    """Events a second of ours and of Flink's backends, a group of bars per query."""
    systems = list(dict.fromkeys(one["system"] for one in data["figures"]))
    queries = list(dict.fromkeys(one["query"] for one in data["figures"]))
    figure, axes = plt.subplots(figsize=(8, 0.6 * len(queries) + 1.5), layout="constrained")
    height = 0.8 / len(systems)
    for number, system in enumerate(systems):
        found = [one for one in data["figures"] if one["system"] == system]
        places = [queries.index(one["query"]) + (number - (len(systems) - 1) / 2) * height for one in found]
        speeds = [one["events_s"] / 1000 for one in found]
        axes.barh(places, speeds, height * 0.9, color=_SYSTEMS[number], label=system)
        for place, one in zip(places, found, strict=True):
            axes.plot([one["low"] / 1000, one["high"] / 1000], [place, place], color="black", linewidth=1)
    axes.set_yticks(range(len(queries)), queries)
    axes.invert_yaxis()
    axes.set_xlabel("thousand events a second on the same two cores (black: range of the rounds)")
    axes.set_title("Nexmark on Spark with spark-ckpt, and on Flink", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def scale_picture(data: Mapping[str, Any]) -> Figure:
    """Figures of the side process by number of stores, on logarithmic axes."""
    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    stores = [one["stores"] for one in data["figures"]]
    curves = {
        "batch, CPU s": [one["batch_cpu_ms"] / 1000 for one in data["figures"]],
        "start, CPU s": [one["start_cpu_ms"] / 1000 for one in data["figures"]],
        "memory, GB": [one["memory_bytes"] / 1e9 for one in data["figures"]],
    }
    for color, (label, values) in zip(_SYSTEMS, curves.items(), strict=True):
        axes.plot(stores, values, marker="o", color=color, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("stores: partitions times state stores of all operators")
    axes.set_title("Side process of the driver, by number of stores", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    """Writes the pictures."""
    files = (NEXMARK, WORKLOADS, FLINK, SCALE)
    nexmark, workloads, flink, scale = (json.loads(file.read_text(encoding="utf-8")) for file in files)
    pictures = {
        "nexmark.png": nexmark_picture(nexmark),
        "workloads.png": draw(
            faster(workloads), "Batches and restarts: spark-ckpt", "times as fast as the best built-in"
        ),
        "flink.png": flink_picture(flink),
        "sizing.png": scale_picture(scale),
    }
    for name, figure in pictures.items():
        figure.savefig(DOCS / name, dpi=130)
        plt.close(figure)


if __name__ == "__main__":
    main()
