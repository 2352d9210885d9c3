from __future__ import annotations

import json
from pathlib import Path

import pytest

import spark_ckpt
from spark_ckpt.flink.export.errors import FlinkRowError, UnsupportedForFlinkError
from spark_ckpt.flink.export.model import StateKind
from spark_ckpt.format.segments import Section
from tests.flink.export.plans import plan_of, rows_of
from tests.golden.locations import golden_locations
from tests.support.state_location import StateLocation, row, schema

KEY = schema(user="string")
COUNT = schema(n="long")
NOTHING = schema(__dummy__="void")
EVENTS, PROCESSING = "$eventTimers_keyToTimestamp", "$procTimers_keyToTimestamp"
NOW_MS = 1000
OFFSETS = b"v1\n" + json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": NOW_MS, "conf": {}}).encode() + b"\n0"


def located(folder: Path, families: dict[str, tuple[dict, dict]], kinds: dict[str, str]) -> StateLocation:  # type: ignore[type-arg]
    return StateLocation(folder, families, name="transformWithStateExec", variables=kinds, offsets=OFFSETS)


def test_values_lists_and_maps_of_a_golden_location() -> None:
    """Row by row what `read_state` reads, and grouped by key."""
    golden = [each for each in golden_locations() if each.query.name == "transform-with-state"][-1]
    location = golden.folder / "checkpoint"
    plan = plan_of(location)
    assert {planned.state.name: planned.java for planned in plan.states} == {
        "count": 'new ValueStateDescriptor<>("count", Types.LONG)',
        "listed": 'new ListStateDescriptor<>("listed", Types.LONG)',
        "mapped": 'new MapStateDescriptor<>("mapped", Types.LONG, Types.LONG)',
    }
    read = {
        name: spark_ckpt.read_state(location, variable=name).to_arrow().to_pylist()
        for name in ("count", "listed", "mapped")
    }
    counts = {each["key"]["key"]: each["value"]["n"] for each in read["count"]}
    assert {each["key"]: each["value"] for each in rows_of(plan, "count")} == counts
    listed: dict[str, list[int]] = {}
    for each in read["listed"]:
        listed.setdefault(each["key"]["key"], []).append(each["list_element"]["value"])
    found = rows_of(plan, "listed")
    assert {each["key"]: each["value"] for each in found} == listed
    assert len(found) == len(listed) > 1
    mapped = [(r["key"]["key"], r["user_map_key"]["digit"], r["user_map_value"]["n"]) for r in read["mapped"]]
    found = rows_of(plan, "mapped")
    assert sorted((each["key"], each["map_key"], each["value"]) for each in found) == sorted(mapped)


@pytest.mark.parametrize(
    ("name", "kind", "state"),
    [
        (EVENTS, StateKind.EVENT_TIMER, "_timer_state/event_user-timers"),
        (PROCESSING, StateKind.PROCESSING_TIMER, "_timer_state/processing_user-timers"),
    ],
)
def test_timers(tmp_path: Path, name: str, kind: StateKind, state: str) -> None:
    timer = schema(key=KEY, expiryTimestampMs="long")
    location = located(tmp_path, {name: (timer, NOTHING)}, {name: "TimerState"})
    made = {("a", 1000), ("a", -5), ("b", 1000)}
    entries = tuple((row(timer, {"user": user}, at), row(NOTHING, None)) for user, at in made)
    location.commit(Section(entries, name))
    plan = plan_of(location)
    assert [planned.state.kind for planned in plan.states] == [kind]
    assert {(each["key"], each["timestamp"]) for each in rows_of(plan, state)} == made


def test_expired_values_are_left_out(tmp_path: Path) -> None:
    """As in Spark, a value expires with the batch whose time is its expiration. An empty list is left to the writer."""
    with_ttl = schema(value=COUNT, ttlExpirationMs="long")
    composite = schema(key=KEY, userKey=COUNT)
    families = {"count": (KEY, with_ttl), "listed": (KEY, with_ttl), "mapped": (composite, with_ttl)}
    kinds = {"count": "ValueState", "listed": "ListState", "mapped": "MapState"}
    location = located(tmp_path, families, kinds)

    def value(n: int, expires_ms: int) -> bytes:
        return row(with_ttl, {"n": n}, expires_ms)

    location.commit(
        Section(((row(KEY, "a"), value(1, NOW_MS)), (row(KEY, "b"), value(2, NOW_MS + 1))), "count"),
        Section(
            (
                (row(KEY, "a"), (value(1, NOW_MS + 1), value(2, NOW_MS), value(3, NOW_MS + 1))),
                (row(KEY, "b"), (value(4, NOW_MS),)),
                (row(KEY, "c"), (value(5, NOW_MS - 1), value(6, NOW_MS + 9))),
            ),
            "listed",
            True,
        ),
        Section(
            tuple((row(composite, {"user": "a"}, {"n": n}), value(n, NOW_MS + n)) for n in (-1, 0, 1, 2)), "mapped"
        ),
    )
    plan = plan_of(location)
    assert rows_of(plan, "count") == [{"key": "b", "value": 2}]
    assert {each["key"]: each["value"] for each in rows_of(plan, "listed")} == {"a": [1, 3], "b": [], "c": [6]}
    assert sorted((each["map_key"], each["value"]) for each in rows_of(plan, "mapped")) == [(1, 1), (2, 2)]
    skipped = {planned.state.name: planned.skipped.rows for planned in plan.states}
    assert skipped == {"count": 1, "listed": 3, "mapped": 2}
    assert all("time to live" in planned.note for planned in plan.states)


def test_columns_named_like_those_of_a_time_to_live(tmp_path: Path) -> None:
    plain = schema(value="long", ttlExpirationMs="long")
    location = located(tmp_path, {"count": (KEY, plain)}, {"count": "ValueState"})
    location.commit(Section(((row(KEY, "a"), row(plain, 1, 0)),), "count"))
    assert rows_of(plan_of(location), "count") == [{"key": "a", "value": {"kind": 0, "f0": 1, "f1": 0}}]


def test_a_null_names_key_and_state(tmp_path: Path) -> None:
    families = {"count": (KEY, COUNT), "listed": (KEY, COUNT)}
    location = located(tmp_path, families, {"count": "ValueState", "listed": "ListState"})
    elements = (row(COUNT, 1), row(COUNT, None))
    location.commit(
        Section(((row(KEY, None), row(COUNT, 1)),), "count"), Section(((row(KEY, "b"), elements),), "listed", True)
    )
    plan = plan_of(location)
    with pytest.raises(FlinkRowError, match=r"state count, column key: key {'user': None}: user is null") as caught:
        rows_of(plan, "count")
    assert caught.value.operator == plan.operator.title
    with pytest.raises(FlinkRowError, match=r"state listed, column value: key {'user': 'b'}: n is null"):
        rows_of(plan, "listed")
    plan = plan_of(location, "rowdata", "rowdata")
    assert rows_of(plan, "count") == [{"key": {"kind": 0, "f0": None}, "value": {"kind": 0, "f0": 1}}]


def test_a_state_that_flink_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    families = {"count": (KEY, COUNT), "any": (KEY, schema(it="variant"))}
    location = located(tmp_path, families, {"count": "ValueState", "any": "ValueState"})
    location.commit()
    with pytest.raises(UnsupportedForFlinkError, match="state any: Flink has no type for Spark's variant") as caught:
        plan_of(location)
    assert caught.value.state == "any"


def test_an_operator_without_a_variable(tmp_path: Path) -> None:
    location = located(tmp_path, {"count": (KEY, COUNT)}, {})
    location.commit()
    with pytest.raises(UnsupportedForFlinkError, match="has no state variable"):
        plan_of(location)
