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

_OURS, _RIVAL = "#c2410c", "#6b7280"


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


def draw(found: Sequence[SpeedUp], mean: float) -> Figure:
    """A bar per query, with the range of the rounds."""
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(found) + 1.5), layout="constrained")
    for place, one in enumerate(found):
        axes.barh(place, one.median, height=0.6, color=_OURS, alpha=0.85)
        axes.plot([one.low, one.high], [place, place], color="black", linewidth=1.5)
        axes.text(one.high, place, f"  {one.median:.2f} times {one.rival}", va="center", fontsize=8)
    axes.axvline(1, color=_RIVAL, linewidth=1.2, linestyle="--")
    axes.set_yticks(range(len(found)), [one.query for one in found])
    axes.invert_yaxis()
    axes.set_xlim(0, max(one.high for one in found) * 1.45)
    axes.set_xlabel("times the events a second of the fastest built-in provider (black: range of the rounds)")
    axes.set_title(f"Nexmark on Spark: spark-ckpt, {mean:.2f} in the geometric mean", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Writes the pictures."""
    data = json.loads(NEXMARK.read_text(encoding="utf-8"))
    figure = draw(speed_ups(data), data["mean_ratios"]["events_s"])
    figure.savefig(DOCS / "nexmark.png", dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    main()
