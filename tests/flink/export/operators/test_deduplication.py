from __future__ import annotations

from pathlib import Path

from spark_ckpt.format.segments import Section
from tests.flink.export.plans import plan_of, rows_of
from tests.support.state_location import StateLocation, row, schema

KEY = schema(id="long", day="string")


def test_drop_duplicates(tmp_path: Path) -> None:
    nothing = schema(__dummy__="void")
    location = StateLocation(tmp_path, {"default": (KEY, nothing)}, name="dedupe")
    location.commit(Section(tuple((row(KEY, number, "d"), row(nothing, None)) for number in range(20))))
    location.commit(Section(((row(KEY, 3, "d"), None),)))
    plan = plan_of(location, "tuple")
    assert plan.key.java == "Types.TUPLE(Types.LONG, Types.STRING)"
    found = {(each["key"]["f0"], each["key"]["f1"], each["value"]) for each in rows_of(plan, "seen")}
    assert found == {(number, "d", True) for number in range(20) if number != 3}


def test_drop_duplicates_within_watermark(tmp_path: Path) -> None:
    value = schema(expiresAtMicros="long")
    location = StateLocation(tmp_path, {"default": (KEY, value)}, name="dedupeWithinWatermark")
    location.commit(Section(((row(KEY, 1, "d"), row(value, -1_500_001)),)))
    plan = plan_of(location, "rowdata")
    assert plan.states[0].java == 'new ValueStateDescriptor<>("expiresAtMicros", Types.LONG)'
    assert rows_of(plan, "expiresAtMicros") == [{"key": {"kind": 0, "f0": 1, "f1": "d"}, "value": -1_500_001}]
