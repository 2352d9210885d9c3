"""The page about Nexmark shows the published data, and the picture can be drawn from it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import pytest
from matplotlib import pyplot as plt

from benchmarks.stores.providers import PROVIDERS as PROVIDERS_OF_BENCH
from docs.generate_plots import (
    FLINK,
    NEXMARK,
    SCALE,
    WORKLOADS,
    draw,
    faster,
    flink_picture,
    nexmark_picture,
    scale_picture,
    speed_ups,
)

PAGE = NEXMARK.parents[1] / "nexmark.md"
PROVIDERS = ("ckpt", "hdfs", "rocksdb-changelog")
EVENTS = 100_000
MEASURES = ("events_s", "cpu_s", "restart_ms", "stored_mb")


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
        assert cells[4:] == [f"{ratios[query, measure]['median']:.2f}" for measure in MEASURES[1:]], query
    means = [f"{data['mean_ratios'][measure]:.2f}" for measure in MEASURES]
    assert f"| geometric mean | | | | {' | '.join(means)} |" in PAGE.read_text(encoding="utf-8")


def test_the_page_says_what_the_logs_save(data: dict[str, Any]) -> None:
    """q14 has no state, so its difference is that of Spark's logs."""
    seconds: dict[str, dict[str, float]] = {}
    for one in data["figures"]:
        if one["measure"] == "events_s":
            seconds.setdefault(one["query"], {})[one["provider"]] = EVENTS / one["median"]
    ours = {query: found.pop("ckpt") for query, found in seconds.items()}
    saved = min(seconds["q14"].values()) - ours["q14"]
    rest = {query: (min(found.values()) - saved) / ours[query] for query, found in seconds.items() if query != "q14"}
    low, high = min(rest, key=rest.__getitem__), max(rest, key=rest.__getitem__)
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"a batch takes {saved:.2f} s less" in page
    assert f"{geometric_mean(rest.values()):.2f} times theirs in the geometric mean" in page
    assert f"from {rest[low]:.2f} ({low}) to {rest[high]:.2f} ({high})" in page


OTHERS = NEXMARK.with_name("nexmark-others.json")
SETUPS = ("ckpt", "ckpt-disk", "ckpt-none", "hdfs", "rocksdb-changelog", "rocksdb-ids")


@pytest.fixture(scope="module")
def others() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(OTHERS.read_text(encoding="utf-8"))["figures"]
    return found


def test_the_table_of_other_set_ups_has_the_data(others: list[dict[str, Any]]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for number, one in enumerate(others):
        events, cpu = one["events_s"], one["cpu_s"]
        rivals = [name for name in events if not name.startswith("ckpt")]
        ratios = events["ckpt"] / max(events[name] for name in rivals), cpu["ckpt"] / min(cpu[name] for name in rivals)
        figures = [f"{events[name] / 1000:.0f}" if name in events else "" for name in SETUPS]
        cells = (one["query"], *figures, *(f"{ratio:.2f}" for ratio in ratios))
        assert row_of(others, number, "setup", *cells) in page, one


def test_the_page_says_what_compression_and_the_disk_cost(others: list[dict[str, Any]]) -> None:
    both = [one["events_s"] for one in others if "ckpt-none" in one["events_s"]]
    gains = [events["ckpt-none"] / events["ckpt"] for events in both]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"queries had {min(gains):.2f} to {max(gains):.2f} times the events a second" in page
    loss = max(1 - events["ckpt-disk"] / events["ckpt"] for events in both)
    assert f"cost at most {loss:.0%} here".replace("%", " %") in page


def test_the_published_run_had_equal_answers(data: dict[str, Any]) -> None:
    assert data["warnings"] == []


def test_the_picture_has_a_bar_per_query(data: dict[str, Any], tmp_path: Path) -> None:
    found = speed_ups(data)
    assert [one.query for one in found] == [query for query in rows() if query != "q14"]
    figure = nexmark_picture(data)
    figure.savefig(tmp_path / "picture.png")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [one.query for one in found]
    assert (tmp_path / "picture.png").stat().st_size > 10_000
    plt.close(figure)


COMPARISON = PAGE.with_name("comparison.md")


def row_of(figures: list[dict[str, Any]], number: int, name: str, *cells: str) -> str:
    """Row of a table whose first column has a name only where another one begins."""
    begins = number == 0 or figures[number - 1][name] != figures[number][name]
    first = figures[number][name] if begins else ""
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (first, *cells)) + "|"


def test_the_table_of_workloads_has_the_data() -> None:
    data = json.loads(WORKLOADS.read_text(encoding="utf-8"))
    page = COMPARISON.read_text(encoding="utf-8")
    for number, one in enumerate(data["figures"]):
        cells = [f"{one[name]:,}" if name in one else "" for name in ("ckpt", "hdfs", "rocksdb", "rocksdb-changelog")]
        rival = min(value for name, value in one.items() if name in ("hdfs", "rocksdb", "rocksdb-changelog"))
        ratio = f"{one['ckpt'] / rival:.2f}"
        assert row_of(data["figures"], number, "workload", one["measure"], *cells, ratio) in page, one
    found = faster(data)
    figure = draw(found, "title", "label")
    assert len(figure.axes[0].patches) == len(found) > 10
    plt.close(figure)


def test_the_table_of_joined_windows_has_the_data() -> None:
    data = json.loads(FLINK.with_name("flink-windows.json").read_text(encoding="utf-8"))
    page = COMPARISON.read_text(encoding="utf-8")
    for number, one in enumerate(data["figures"]):
        cells = (
            f"{one['events_s'] / 1000:,.0f} ({one['low'] / 1000:,.0f} to {one['high'] / 1000:,.0f})",
            f"{one['cpu_s']:.2f}",
            f"{one['checkpoint_ms']:.0f}",
        )
        assert row_of(data["figures"], number, "query", one["system"], *cells) in page, one


def test_the_table_of_flink_has_the_data() -> None:
    data = json.loads(FLINK.read_text(encoding="utf-8"))
    page = COMPARISON.read_text(encoding="utf-8")
    for number, one in enumerate(data["figures"]):
        cells = (
            f"{one['events_s'] / 1000:,.0f} ({one['low'] / 1000:,.0f} to {one['high'] / 1000:,.0f})",
            f"{one['cpu_s']:.2f}",
            "" if one["checkpoint_ms"] is None else f"{one['checkpoint_ms']:.0f}",
            "" if one["stored_mb"] is None else f"{one['stored_mb']:.1f}",
        )
        assert row_of(data["figures"], number, "query", one["system"], *cells) in page, one
    figure = flink_picture(data)
    assert len(figure.axes[0].patches) == len(data["figures"])
    plt.close(figure)


SIZING = PAGE.with_name("sizing.md")


def formula(name: str) -> tuple[float, float]:
    """Constant and factor per store of a formula of the page about sizing."""
    pattern = rf"^    {name} += ([\d.]+) (?:ms|MB|s) \+ ([\d.]+) (?:ms|KB) x stores"
    found = re.search(pattern, SIZING.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, name
    return float(found[1]), float(found[2])


def test_the_table_of_sizing_has_the_data() -> None:
    data = json.loads(SCALE.read_text(encoding="utf-8"))
    page = SIZING.read_text(encoding="utf-8")
    for one in data["figures"]:
        cells = (
            f"{one['partitions']:,}",
            f"{one['stores']:,}",
            *(f"{one[name]:,.0f}" for name in ("batch_cpu_ms", "completing_ms")),
            f"{one['metadata_bytes'] / 1e6:,.1f}",
            *(f"{one[name]:,.0f}" for name in ("start_cpu_ms", "locate_cpu_ms", "list_ms")),
            f"{one['memory_bytes'] / 1e6:,.0f}",
        )
        assert f"| {' | '.join(cells)} |" in page, one
    for one in data["queries"]:
        assert f"| {one['queries']} | {one['batch_cpu_ms']:.1f} | {one['memory_bytes'] / 1e6:,.0f} |" in page, one
    for one in data["cluster"]:
        cells = (one["partitions"], one["stores"], one["batch_cpu_ms"], one["endpoint_cpu_ms"], one["batch_ms"])
        row = [f"{cell:,.0f}" for cell in (*cells, one["memory_bytes"] / 1e6)]
        assert f"| {' | '.join(row)} |" in page, one
    figure = scale_picture(data)
    assert len(figure.axes[0].lines) == 3
    plt.close(figure)


@pytest.mark.parametrize(
    ("name", "measure", "constant_unit", "unit"),
    [("CPU of a batch", "batch_cpu_ms", 1, 1), ("memory", "memory_bytes", 1e6, 1e3), ("start", "start_cpu_ms", 1e3, 1)],
)
def test_formulas_of_sizing_are_near_the_measurements(
    name: str, measure: str, constant_unit: float, unit: float
) -> None:
    constant, per_store = formula(name)
    for one in json.loads(SCALE.read_text(encoding="utf-8"))["figures"]:
        told = constant * constant_unit + per_store * unit * one["stores"]
        assert told == pytest.approx(one[measure], rel=0.35), one["stores"]


def test_a_message_alone_costs_what_the_page_says() -> None:
    told = re.search(r"count with ([\d.]+) ms per message", SIZING.read_text(encoding="utf-8"))
    assert told is not None
    for one in json.loads(SCALE.read_text(encoding="utf-8"))["cluster"][1:]:
        for name in ("batch_cpu_ms", "endpoint_cpu_ms"):
            assert one[name] / (2 * one["stores"]) == pytest.approx(float(told[1]), rel=0.35), one


def test_examples_of_sizing_are_products_of_its_formulas() -> None:
    rows = re.findall(
        r"^\| ([\d,]+) M \| ([\d,]+)( M)? \| (\d+) \| ([\d.]+) (MB|GB) \| ([\d.]+) (MB|GB) \| ([\d.]+) MB \|$",
        SIZING.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == 3
    sizes = {"MB": 1e6, "GB": 1e9}
    for (keys, changed, millions, executors, state, unit, stored, stored_unit, written), amplification in zip(
        rows, (3.5, 6.2, 9), strict=True
    ):
        count = float(keys.replace(",", "")) * 1e6
        changes = float(changed.replace(",", "")) * (1e6 if millions else 1)
        assert float(state) * sizes[unit] == pytest.approx(count * 103 / int(executors), rel=0.05)
        assert float(stored) * sizes[stored_unit] == pytest.approx(1.5 * 22 * count, rel=0.05)
        assert float(written) * 1e6 == pytest.approx(changes * 32.6 * amplification, rel=0.05)


@pytest.mark.parametrize("table", ["figures", "rescaled"])
def test_the_table_of_recovery_has_the_data(table: str) -> None:
    data = json.loads(NEXMARK.with_name("recovery.json").read_text(encoding="utf-8"))[table]
    page = COMPARISON.read_text(encoding="utf-8")
    titles = {name: provider.title for name, provider in PROVIDERS_OF_BENCH.items()}
    for number, one in enumerate(data):
        seconds = f"{one['seconds']:.1f} ({one['low']:.1f} to {one['high']:.1f})"
        system = titles.get(one["system"], one["system"])
        assert row_of(data, number, "query", system, seconds) in page, one
