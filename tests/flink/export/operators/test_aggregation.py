from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spark_ckpt
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.export_savepoint import export_plan
from spark_ckpt.format.segments import Section
from spark_ckpt.storage import LocalStorage
from tests.flink.export.plans import plan_of, rows_of
from tests.golden.locations import golden_locations
from tests.support.state_location import Schema, StateLocation, row, schema

KEY = schema(user="string")


def buffers(*names: str, kind: str = "long") -> Schema:
    """Columns of an aggregate, whose names may repeat."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name in names]
    return {"type": "struct", "fields": fields}


def location_of(folder: Path, key: Schema, value: Schema, **options: Any) -> StateLocation:
    return StateLocation(folder, {"default": (key, value)}, **options)


@pytest.mark.parametrize("golden", [each for each in golden_locations() if each.query.name == "files"], ids=str)
def test_a_golden_location(golden: Any) -> None:
    location = golden.folder / "checkpoint"
    plan = plan_of(location)
    (planned,) = plan.states
    assert planned.java == (
        'new ValueStateDescriptor<>("aggregate", InternalTypeInfo.ofFields(new BigIntType(), new BigIntType()))'
    )
    assert planned.note == "columns: count, sum"
    read = spark_ckpt.read_state(location).to_arrow().to_pylist()
    expected = {each["key"]["key"]: (each["value"]["count"], each["value"]["sum"]) for each in read}
    found = {each["key"]: (each["value"]["f0"], each["value"]["f1"]) for each in rows_of(plan, "aggregate")}
    assert found == expected
    assert len(found) > 1


def test_the_accumulators_of_flink_sql(tmp_path: Path) -> None:
    """The key is null as generated code writes it, and a SUM without values is null."""
    location = location_of(tmp_path, KEY, buffers("count", "sum", "min", "max", "max"))
    location.commit(Section(((row(KEY, None), row(location.families["default"][1], 1, None, 3, 4, 5)),)))
    plan = plan_of(location, "rowdata", is_sql=True)
    assert plan.operator.codegen
    (planned,) = plan.states
    assert planned.note == "columns: count, sum, min, max, max_2"
    (found,) = rows_of(plan, "accState")
    assert found == {
        "key": {"kind": 0, "f0": None},
        "value": {"kind": 0, "f0": 1, "f1": None, "f2": 3, "f3": 4, "f4": 5},
    }


@pytest.mark.parametrize(("is_average", "expected"), [(True, None), (False, 0.0)])
def test_the_sum_of_an_average_without_values(tmp_path: Path, is_average: bool, expected: float | None) -> None:
    """Spark's average begins with the sum 0, and its SUM and Flink's are null without values. A count of its own is
    never null."""
    value = buffers("sum", "count", kind="double")
    value["fields"][1] |= {"type": "long", "nullable": is_average}
    location = location_of(tmp_path, KEY, value)
    rows = [(row(KEY, name), row(value, *values)) for name, *values in (("a", 0.0, 0), ("b", 0.0, 2), ("c", 3.5, 1))]
    location.commit(Section(tuple(rows)))
    found = rows_of(plan_of(location, "rowdata", is_sql=True), "accState")
    assert {each["key"]["f0"]: (each["value"]["f0"], each["value"]["f1"]) for each in found} == {
        "a": (expected, 0),
        "b": (0.0, 2),
        "c": (3.5, 1),
    }


@pytest.mark.parametrize(
    ("names", "key", "reason"),
    [
        (("count", "first"), "rowdata", "the buffer first is none of COUNT, SUM, MIN and MAX"),
        (("sum", "isEmpty"), "rowdata", "the buffer isEmpty is none of"),
        (("count",), "string", "use --key rowdata with --sql-aggregate"),
    ],
)
def test_accumulators_that_flink_sql_does_not_have(
    tmp_path: Path, names: tuple[str, ...], key: str, reason: str
) -> None:
    location = location_of(tmp_path, KEY, buffers(*names))
    location.commit()
    with pytest.raises(UnsupportedForFlinkError, match=reason):
        plan_of(location, key, is_sql=True)


def test_state_format_1_has_the_key_in_the_value_too(tmp_path: Path) -> None:
    conf = {"spark.sql.streaming.aggregation.stateFormatVersion": "1"}
    offsets = b"v1\n" + json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": conf}).encode() + b"\n0"
    value = schema(user="string", count="long")
    location = location_of(tmp_path, KEY, value, offsets=offsets)
    location.commit(Section(((row(KEY, "a"), row(value, "a", 7)),)))
    plan = plan_of(location)
    assert plan.states[0].note == "columns: count"
    assert rows_of(plan, "aggregate") == [{"key": "a", "value": {"kind": 0, "f0": 7}}]


def test_an_aggregate_without_grouping(tmp_path: Path) -> None:
    value = buffers("count")
    location = location_of(tmp_path, schema(), value)
    location.commit(Section(((row(schema()), row(value, 7)),)))
    assert rows_of(plan_of(location, "rowdata"), "aggregate") == [{"key": {"kind": 0}, "value": {"kind": 0, "f0": 7}}]


@pytest.mark.parametrize(("is_sql", "max_parallelism"), [(False, 128), (True, 1)])
def test_key_groups_of_an_aggregate_without_grouping(tmp_path: Path, is_sql: bool, max_parallelism: int) -> None:
    location = location_of(tmp_path / "q", schema(), buffers("count"))
    location.commit(Section(((row(schema()), row(buffers("count"), 7)),)))
    plan = plan_of(location, "rowdata", is_sql=is_sql)
    assert plan.operator.max_parallelism == max_parallelism
    assert export_plan(plan, LocalStorage(tmp_path / "s")).files == min(2, max_parallelism) + 1
    (found,) = spark_ckpt.read_state(tmp_path / "s").to_arrow().to_pylist()
    assert (found["key"], found["value"]) == ({"kind": 0}, {"kind": 0, "f0": 7})


def test_only_an_aggregate_has_accumulators(tmp_path: Path) -> None:
    location = StateLocation(tmp_path, {"default": (KEY, schema(__dummy__="void"))}, name="dedupe")
    location.commit()
    with pytest.raises(UnsupportedForFlinkError, match="dedupe is no aggregate: export without --sql-aggregate"):
        plan_of(location, "rowdata", is_sql=True)


def test_an_operator_without_keys_is_refused(tmp_path: Path) -> None:
    location = StateLocation(tmp_path, {"default": (KEY, schema(value="long"))}, name="globalLimit")
    location.commit()
    with pytest.raises(UnsupportedForFlinkError, match="globalLimit of Spark has no counterpart"):
        plan_of(location)
