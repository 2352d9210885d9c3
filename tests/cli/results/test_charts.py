from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from spark_ckpt.cli.results.charts import HEIGHT, WIDTH, Bar, Series, bar_chart, line_chart, text, timeline

HOSTILE = "</title><script>alert('1')</script>\x1b[31m\" onload=\"x"


def parsed(figure: str) -> ElementTree.Element:
    """The figure, which must be well-formed."""
    return ElementTree.fromstring(figure)


def rectangles(figure: str) -> list[dict[str, float]]:
    found = parsed(figure).iter("rect")
    return [{name: float(each.attrib[name]) for name in ("x", "y", "width", "height")} for each in found]


def test_text_is_escaped() -> None:
    assert text(HOSTILE) == (
        "&lt;/title&gt;&lt;script&gt;alert(&#x27;1&#x27;)&lt;/script&gt;\\x1b[31m&quot; onload=&quot;x"
    )
    assert text("\ud83d").encode() == b"\\ud83d"


def test_bars_are_stacked_in_proportion() -> None:
    stack = (Series("a", "one", [100, None, 50]), Series("b", "two", [100, 0, None]))
    figure = bar_chart("name", ["x", "y", "z"], stack, str)
    first, second, third = rectangles(figure)
    assert (first["x"], first["height"]) == (second["x"], second["height"])
    assert second["y"] + second["height"] == pytest.approx(first["y"], abs=0.2)
    assert third["height"] == pytest.approx(first["height"] / 2, abs=0.2)
    assert third["x"] > first["x"]
    assert [title.text for title in parsed(figure).iter("title")] == ["x, a: 100", "x, b: 100", "z, a: 50"]


def test_a_line_is_interrupted_where_there_is_no_value() -> None:
    figure = line_chart("name", list("abcde"), (Series("s", "one", [1, 2, None, 4, 0]),), str)
    points = [each.attrib["points"].split() for each in parsed(figure).iter("polyline")]
    assert [len(each) for each in points] == [2, 2]
    assert len(list(parsed(figure).iter("circle"))) == 4


def test_a_timeline_has_the_proportions_of_time() -> None:
    bars = [Bar(1000, 100, "one", "first"), Bar(1500, 200, "failed", "second"), Bar(1999, 1, "one", "third")]
    first, second, third = rectangles(timeline("name", bars, str))
    assert second["width"] == pytest.approx(2 * first["width"], abs=0.2)
    assert third["width"] > 0
    assert second["x"] - first["x"] == pytest.approx(5 * first["width"], abs=0.5)


@pytest.mark.parametrize("values", [[], [0], [None], [0, 0], [2**63 - 1, 1], list(range(1000))])
def test_everything_lies_within_the_plot(values: list[int | None]) -> None:
    labels = [f"batch {i}" for i in range(len(values))]
    bars = [Bar(i, value or 0, "one", "tip") for i, value in enumerate(values)]
    for figure in (
        bar_chart("name", labels, (Series("s", "one", values),), str),
        line_chart("name", labels, (Series("s", "one", values),), str),
        timeline("name", bars, str),
    ):
        for rectangle in rectangles(figure):
            assert 0 <= rectangle["x"] <= rectangle["x"] + rectangle["width"] <= WIDTH + 2
            assert 0 <= rectangle["y"] <= rectangle["y"] + rectangle["height"] <= HEIGHT + 0.2
        for circle in parsed(figure).iter("circle"):
            assert 0 <= float(circle.attrib["cy"]) <= HEIGHT
        assert not re.search(r"nan|inf", " ".join(each.attrib.get("y", "") for each in parsed(figure).iter()))
        assert len(list(parsed(figure).iter("text"))) < 20


def test_hostile_names_stay_text() -> None:
    series = (Series(HOSTILE, "one", [1]),)
    for figure in (
        bar_chart(HOSTILE, [HOSTILE], series, lambda value: HOSTILE),
        line_chart(HOSTILE, [HOSTILE], series, lambda value: HOSTILE),
        timeline(HOSTILE, [Bar(0, 1, "one", HOSTILE)], lambda value: HOSTILE),
    ):
        tags = {each.tag for each in parsed(figure).iter()}
        assert "script" not in tags
        assert not any("onload" in each.attrib for each in parsed(figure).iter())
