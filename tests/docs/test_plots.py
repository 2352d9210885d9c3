"""The page about Nexmark shows the published data, and the picture can be drawn from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot as plt

from docs.generate_plots import NEXMARK, draw, speed_ups

PAGE = NEXMARK.parents[1] / "nexmark.md"
PROVIDERS = ("ckpt", "hdfs", "rocksdb-changelog")


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NEXMARK.read_text(encoding="utf-8"))
    return found


def rows() -> dict[str, list[str]]:
    """Cells of the table of figures, by query."""
    lines = re.findall(r"^\| (q\d+): [^|]*\|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {query: [cell.strip() for cell in cells.split("|")] for query, cells in lines}


def test_the_table_has_the_medians(data: dict[str, Any]) -> None:
    thousands = {
        (one["query"], one["provider"]): f"{one['median'] / 1000:.0f}"
        for one in data["figures"]
        if one["measure"] == "events_s"
    }
    found = rows()
    assert found.keys() == {query for query, _ in thousands}
    for query, cells in found.items():
        assert cells[:3] == [thousands.get((query, provider), "") for provider in PROVIDERS], query


def test_the_table_has_the_ratios(data: dict[str, Any]) -> None:
    ratios = {(one["query"], one["measure"]): one for one in data["ratios"]}
    for query, cells in rows().items():
        throughput = ratios[query, "events_s"]
        assert cells[3] == "{median:.2f} ({low:.2f} to {high:.2f})".format(**throughput), query
        assert cells[4:] == [f"{ratios[query, measure]['median']:.2f}" for measure in ("cpu_s", "restart_ms")], query
    means = [f"{data['mean_ratios'][measure]:.2f}" for measure in ("events_s", "cpu_s", "restart_ms")]
    assert f"| geometric mean | | | | {' | '.join(means)} |" in PAGE.read_text(encoding="utf-8")


def test_the_published_run_had_equal_answers(data: dict[str, Any]) -> None:
    assert data["warnings"] == []


def test_the_picture_has_a_bar_per_query(data: dict[str, Any], tmp_path: Path) -> None:
    found = speed_ups(data)
    assert [one.query for one in found] == [query for query in rows() if query != "q14"]
    figure = draw(found, data["mean_ratios"]["events_s"])
    figure.savefig(tmp_path / "picture.png")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [one.query for one in found]
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    plt.close(figure)
