"""Structure of the dashboard for Grafana: what Grafana needs to show it, without Grafana."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.support.provider import REPOSITORY

COLUMNS = 24
"""Width of Grafana's grid."""

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
"""Data source that the user chooses at the top of the dashboard."""

OF_GRAFANA = {"__rate_interval", "__range"}
"""Variables that Grafana sets."""

UNITS = {"Duration": "ms", "Timestamp": "s", "Size": "bytes", "Rss": "bytes"}
"""Unit (`getValueFormats` of Grafana's package `@grafana/data`) by the end of a metric's name; `short` for all others.
Expressions turn timestamps into ages in seconds."""

Json = dict[str, Any]


def dashboard() -> Json:
    content: Json = json.loads((REPOSITORY / "conf" / "grafana" / "spark-ckpt.json").read_text())
    return content


def panels() -> list[Json]:
    found: list[Json] = dashboard()["panels"]
    return found


def graphs() -> list[Json]:
    return [panel for panel in panels() if panel["type"] != "row"]


def expressions(panel: Json) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def metrics(expression: str) -> list[str]:
    return re.findall(r"\bspark_ckpt_(?:driver_)?([a-zA-Z]+)", expression)


def sources(content: Any) -> Iterator[Any]:
    """All data sources in a part of the dashboard."""
    if isinstance(content, dict):
        if "datasource" in content:
            yield content["datasource"]
        for value in content.values():
            yield from sources(value)
    elif isinstance(content, list):
        for value in content:
            yield from sources(value)


def test_each_panel_is_a_row_or_a_graph_of_its_own() -> None:
    assert {panel["type"] for panel in panels()} == {"row", "timeseries"}
    for name in ("id", "title"):
        assert max(Counter(panel[name] for panel in panels()).values()) == 1
    assert all(panel["description"] and panel["targets"] for panel in graphs())
    for panel in graphs():
        refs = [target["refId"] for target in panel["targets"]]
        assert refs == [chr(ord("A") + number) for number in range(len(refs))]
        assert all(target["legendFormat"] for target in panel["targets"])


def test_panels_fill_the_grid_without_overlap() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        x, y, width, height = (panel["gridPos"][key] for key in ("x", "y", "w", "h"))
        assert min(x, y) >= 0
        assert min(width, height) >= 1
        assert x + width <= COLUMNS
        if panel["type"] == "row":
            assert (x, width, height) == (0, COLUMNS, 1)
        for cell in product(range(x, x + width), range(y, y + height)):
            assert cell not in taken, f"{panel['title']} covers {taken[cell]}"
            taken[cell] = panel["title"]
    lines = {y for _, y in taken}
    assert lines == set(range(len(lines))), "there is an empty line"
    places = [(panel["gridPos"]["y"], panel["gridPos"]["x"]) for panel in panels()]
    assert places == sorted(places)


def test_everything_asks_the_chosen_data_source() -> None:
    content = dashboard()
    chosen, *variables = content["templating"]["list"]
    assert (chosen["name"], chosen["type"], chosen["query"]) == ("datasource", "datasource", "prometheus")
    assert [variable["type"] for variable in variables] == ["query"] * len(variables)
    # Both are required in a value (`VariableOption` of Grafana's package `@grafana/schema`).
    assert all({"text", "value"} <= set(v["current"]) for v in content["templating"]["list"] if "current" in v)
    found = list(sources(content))
    assert len(found) == len(variables) + len(graphs()) + sum(len(panel["targets"]) for panel in graphs()) + 1
    assert all(source == SOURCE for source in found)


def test_variables_are_defined_and_used() -> None:
    content = dashboard()
    defined = {variable["name"] for variable in content["templating"]["list"]}
    everything = json.dumps([content["panels"], [v.get("query") for v in content["templating"]["list"]]])
    used = {braced or bare for braced, bare in re.findall(r"\$(?:\{(\w+)\}|(\w+))", everything)}
    assert used - OF_GRAFANA == defined
    for panel in graphs():
        for expression in expressions(panel):
            # Grafana writes several values as a regular expression.
            assert expression.count('application=~"$application"') == len(metrics(expression)), panel["title"]
            assert '="$' not in expression, panel["title"]


def test_legends_have_labels_that_the_metrics_have() -> None:
    for panel in graphs():
        for target in panel["targets"]:
            labels = {"application"} if "spark_ckpt_driver_" in target["expr"] else {"application", "query"}
            assert set(re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"])) <= labels, panel["title"]


def test_units_are_those_of_the_metrics() -> None:
    for panel in graphs():
        ends = (end for expression in expressions(panel) for name in metrics(expression) for end in UNITS)
        names = [name for expression in expressions(panel) for name in metrics(expression)]
        expected = {UNITS[end] for end in ends if any(name.endswith(end) for name in names)} or {"short"}
        assert {panel["fieldConfig"]["defaults"]["unit"]} == expected, panel["title"]


def test_each_documented_metric_has_a_panel() -> None:
    page = (REPOSITORY / "docs" / "metrics.md").read_text().partition("## In Spark's metrics system")[2]
    lines = page.partition("## Prometheus and Grafana")[0].splitlines()
    documented = {line.split("`")[1] for line in lines if line.startswith("| `")}
    shown = {name for panel in graphs() for expression in expressions(panel) for name in metrics(expression)}
    assert shown <= documented
    # Moments and numbers without a course over time.
    assert documented - shown == {
        "totalNumberOfCheckpoints",
        "lastCompletedCheckpointId",
        "lastCheckpointFailedTimestamp",
        "lastCheckpointRestoreTimestamp",
    }
