from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import spark_ckpt
from spark_ckpt.format.segments import Section
from tests.flink.export.plans import plan_of, rows_of
from tests.golden.locations import golden_locations
from tests.support import state_location
from tests.support.state_location import StateLocation, row, schema


@pytest.fixture
def one_key_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows in one key group, as those of a key always are."""
    monkeypatch.setattr(state_location, "key_group", lambda key: 0)


JOINS = [each for each in golden_locations() if each.query.name.startswith("join")]


@pytest.mark.parametrize("golden", JOINS, ids=str)
def test_golden_locations(golden: Any) -> None:
    """Stores of their own in state format 2, column families in format 3."""
    location = golden.folder / "checkpoint"
    plan = plan_of(location, "long")
    most = 0
    for side in ("left", "right"):
        read: dict[int, list[tuple[Any, ...]]] = {}
        for each in spark_ckpt.read_state(location, side=side).to_arrow().to_pylist():
            read.setdefault(each["key"]["field0"], []).append(tuple(each["value"].values()))
        rows = rows_of(plan, side)
        found = {each["key"]: [tuple(value.values())[1:-1] for value in each["value"]] for each in rows}
        assert {key: sorted(values) for key, values in found.items()} == {k: sorted(v) for k, v in read.items()}
        assert len(found) == len(rows)
        most = max(most, *map(len, found.values()))
    assert most > 1, "no list has two rows"


@pytest.mark.usefixtures("one_key_group")
def test_rows_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    key, value = schema(id="long", index="long"), schema(text="string", matched="boolean")
    left, right = "left-keyWithIndexToValue", "right-keyWithIndexToValue"
    families = {left: (key, value), right: (key, value)}
    location = StateLocation(tmp_path, families, name="symmetricHashJoin", state_format=3, variables={})
    numbers = [(1, 10), (2, 0), (1, 2), (1, 0), (2, 1), (1, 1)]
    entries = tuple((row(key, user, n), row(value, f"{user}-{n}", n == 2)) for user, n in numbers)
    location.commit(Section(entries[:3], left), base=[Section(entries[3:], left)])
    plan = plan_of(location, "long")
    assert plan.states[0].note == "columns: text, matched"
    found = {each["key"]: [(item["f0"], item["f1"]) for item in each["value"]] for each in rows_of(plan, "left")}
    assert found == {
        1: [("1-0", False), ("1-1", False), ("1-2", True), ("1-10", False)],
        2: [("2-0", False), ("2-1", False)],
    }
    assert rows_of(plan, "right") == []


@pytest.mark.usefixtures("one_key_group")
def test_state_format_4(tmp_path: Path) -> None:
    """A list of rows for each key and event time: the lists of a key become one, in the order of the times."""
    key, value = schema(id="long", ts="long"), schema(text="string", matched="boolean")
    left, right = "left-keyWithTsToValues", "right-keyWithTsToValues"
    families = {left: (key, value), right: (key, value)}
    location = StateLocation(tmp_path, families, name="symmetricHashJoin", state_format=4, variables={})
    lists = {(1, 20): ["d", "c"], (1, -10): ["a"], (2, 0): ["x"], (1, 15): ["b"]}
    entries = tuple(
        (row(key, *each), tuple(row(value, text, False) for text in texts)) for each, texts in lists.items()
    )
    location.commit(Section(entries, left, True))
    rows = rows_of(plan_of(location, "long"), "left")
    assert {each["key"]: [item["f0"] for item in each["value"]] for each in rows} == {1: ["a", "b", "d", "c"], 2: ["x"]}


@pytest.mark.usefixtures("one_key_group")
def test_keys_of_several_types(tmp_path: Path) -> None:
    """A null is a value of its own."""
    key = schema(a="string", b="timestamp", c="decimal(20,2)", d="double", index="long")
    value = schema(n="long", matched="boolean")
    families = {f"{side}-keyWithIndexToValue": (key, value) for side in ("left", "right")}
    location = StateLocation(tmp_path, families, name="symmetricHashJoin", state_format=3, variables={})
    keys = [("x", 1, Decimal("1.00"), 0.5), ("x", None, Decimal("1.00"), 0.5), (None, 1, Decimal("1.00"), 0.5)]
    entries = tuple((row(key, *each, n), row(value, n, False)) for n in (1, 0) for each in keys)
    location.commit(Section(entries, "left-keyWithIndexToValue"))
    rows = rows_of(plan_of(location, "rowdata"), "left")
    assert len(rows) == len(keys)
    assert all([item["f0"] for item in each["value"]] == [0, 1] for each in rows)
