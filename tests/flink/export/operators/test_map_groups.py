from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.format.segments import Section
from tests.flink.export.plans import plan_of, rows_of
from tests.support.state_location import StateLocation, row, schema

KEY = schema(user="string")
STATE = schema(n="long", total="double")


@pytest.mark.parametrize("name", ["flatMapGroupsWithState", "applyInPandasWithState"])
def test_state_and_timeout(tmp_path: Path, name: str) -> None:
    """A key may have only one of both; Spark writes -1 for no timeout."""
    value = schema(groupState=STATE, timeoutTimestamp="long")
    location = StateLocation(tmp_path, {"default": (KEY, value)}, name=name)
    rows = {"a": ({"n": 1, "total": 0.5}, 99), "b": (None, 7), "c": ({"n": 2, "total": None}, -1)}
    location.commit(Section(tuple((row(KEY, user), row(value, *each)) for user, each in rows.items())))
    plan = plan_of(location)
    assert [planned.state.name for planned in plan.states] == ["groupState", "timeoutTimestamp"]
    found = {each["key"]: (each["value"]["f0"], each["value"]["f1"]) for each in rows_of(plan, "groupState")}
    assert found == {"a": (1, 0.5), "c": (2, None)}
    assert {each["key"]: each["value"] for each in rows_of(plan, "timeoutTimestamp")} == {"a": 99, "b": 7}


def test_without_timeout(tmp_path: Path) -> None:
    value = schema(groupState=schema(value="long"))
    location = StateLocation(tmp_path, {"default": (KEY, value)}, name="flatMapGroupsWithState")
    location.commit(Section(((row(KEY, "a"), row(value, {"value": 3})),)))
    plan = plan_of(location)
    assert [planned.java for planned in plan.states] == ['new ValueStateDescriptor<>("groupState", Types.LONG)']
    assert rows_of(plan, "groupState") == [{"key": "a", "value": 3}]


def test_state_format_1(tmp_path: Path) -> None:
    """The columns of the state come before the time."""
    value = schema(n="long", total="double", timeoutTimestamp="integer")
    value["fields"][-1]["type"] = "long"
    location = StateLocation(tmp_path, {"default": (KEY, value)}, name="flatMapGroupsWithState", state_format=1)
    location.commit(Section(((row(KEY, "a"), row(value, 1, 0.5, -1)),)))
    plan = plan_of(location)
    assert rows_of(plan, "groupState") == [{"key": "a", "value": {"kind": 0, "f0": 1, "f1": 0.5}}]
    assert rows_of(plan, "timeoutTimestamp") == []
