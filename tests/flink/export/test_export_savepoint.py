"""Savepoints of whole operators, read back as state of Flink and compared with what `read_state` reads in Spark's."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import spark_ckpt
from spark_ckpt.flink.export.errors import UnsupportedForFlinkError
from spark_ckpt.flink.export.export_savepoint import FlinkExport, export_plan
from spark_ckpt.format.segments import Section
from spark_ckpt.storage import LocalStorage
from tests.flink.export.plans import UID, plan_of
from tests.golden.locations import Golden, golden_locations
from tests.support.state_location import Schema, StateLocation, row, schema

GOLDEN = {str(each): each for each in golden_locations() if each.query.root == "checkpoint"}
KEY = schema(user="string", day="date", at="timestamp", price="decimal(20,2)", id="long")
VALUE = schema(
    flag="boolean",
    small="byte",
    number="short",
    code="integer",
    total="long",
    ratio="float",
    share="double",
    text="string",
    raw="binary",
    day="date",
    at="timestamp",
    local="timestamp_ntz",
    price="decimal(9,2)",
    large="decimal(38,10)",
)
MOMENTS = (-62_135_596_800_000_000, -1_000_001, -1, 0, 1, 999_999, 1_700_000_000_123_456, 253_402_300_799_999_999)


def export(location: StateLocation | Path, target: Path, **options: Any) -> FlinkExport:
    return export_plan(plan_of(location, **options), LocalStorage(target))


def rows(place: Path | str, **selected: Any) -> list[dict[str, Any]]:
    table = spark_ckpt.read_state(place, **selected).to_arrow()
    found: list[dict[str, Any]] = table.select(
        [name for name in table.schema.names if name not in ("partition_id", "key_group")]
    ).to_pylist()
    return found


def as_row(value: dict[str, Any]) -> dict[str, Any]:
    """A struct of Spark as a row of Flink."""
    return {"kind": 0, **{f"f{number}": item for number, item in enumerate(value.values())}}


@pytest.mark.parametrize("golden", GOLDEN.values(), ids=GOLDEN)
def test_golden_locations(golden: Golden, tmp_path: Path) -> None:
    """Everything as a row of Flink SQL: field by field the columns of Spark."""
    location = golden.copy_to(tmp_path / "golden")
    exported = export(location, tmp_path / "savepoint", key="rowdata", value="rowdata")
    assert exported.files is not None
    assert {path.stat().st_size for path in (tmp_path / "savepoint").iterdir()} != {0}
    assert exported.bytes == sum(path.stat().st_size for path in (tmp_path / "savepoint").iterdir())
    for state in exported.states:
        found = rows(tmp_path / "savepoint", variable=state.name)
        if exported.name == "symmetricHashJoin":
            expected = [
                (as_row(each["key"]), each["value"])
                for each in rows(location, side=state.name)  # without the flag of joined rows
            ]
            read = [(each["key"], list(each["list_element"].values())[1:-1]) for each in found]
            assert sorted(map(str, read)) == sorted(str((key, list(value.values()))) for key, value in expected)
        else:
            variable = {} if state.origin == "default" else {"variable": state.name}
            expected_rows = [{name: as_row(part) for name, part in each.items()} for each in rows(location, **variable)]
            assert sorted(map(str, found)) == sorted(map(str, expected_rows))
        assert found
        assert state.rows is not None
        assert 0 < state.rows <= len(found)


def all_types(folder: Path) -> StateLocation:
    """Location whose rows have each type, with nulls and with times before 1970."""
    location = StateLocation(folder, {"default": (KEY, VALUE)})
    entries = []
    for number, micros in enumerate(MOMENTS):
        key = row(KEY, "ü" * number, micros // 86_400_000_000, micros, str(Decimal(micros).scaleb(-2)), micros)
        value = row(
            VALUE,
            *(bool(number % 2), -number, number * 999, -number * 99_999, micros, number / 2, micros / 3),
            *("é" * number, bytes(range(number)), micros // 86_400_000_000, micros, micros),
            *(f"{number}.50", f"-{number}.0000000001"),
        )
        entries.append((key, value))
    # One null of each column, in keys and values.
    whole: list[Any] = ["k", 1, 2, "3.00", 4]
    for column in range(len(whole)):
        key = row(KEY, *(None if number == column else each for number, each in enumerate(whole)))
        entries.append((key, row(VALUE, *[None] * len(VALUE["fields"]))))
    location.commit(Section(tuple(entries)))
    return location


@pytest.mark.parametrize("is_sql", [False, True], ids=["datastream", "sql"])
def test_rows_of_all_types_with_nulls(tmp_path: Path, is_sql: bool) -> None:
    if is_sql:
        value = schema(count="long")
        location = StateLocation(tmp_path / "q", {"default": (KEY, value)})
        key = row(KEY, None, None, None, None, None)
        location.commit(Section(((key, row(value, 3)), (row(KEY, "a", 1, -1, "1.00", 2), row(value, 4)))))
    else:
        location = all_types(tmp_path / "q")
    exported = export(location, tmp_path / "s", key="rowdata", is_sql=is_sql)
    expected = [{name: as_row(part) for name, part in each.items()} for each in rows(location.path)]
    found = rows(tmp_path / "s")
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert len(found) == len({str(each["key"]) for each in found}) == exported.states[0].rows


def test_values_of_the_datastream_api(tmp_path: Path) -> None:
    """As a `Row`: an instant is whole seconds and nanoseconds, also before 1970."""
    location = all_types(tmp_path / "q")
    export(location, tmp_path / "s", key="rowdata", value="row")
    found = {each["key"]["f4"]: each["value"] for each in rows(tmp_path / "s") if each["key"]["f0"] != "k"}
    for micros in MOMENTS:
        value = found[micros]
        instant, local = value["f10"], value["f11"]
        assert instant["seconds"] * 1_000_000_000 + instant["nanos"] == micros * 1000
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)
        assert local["date"] == {"year": moment.year, "month": moment.month, "day": moment.day}
        assert local["time"]["nanos"] == moment.microsecond * 1000
    assert found[-1]["f13"] == "-2.0000000001"
    assert found[-1]["f12"] == "2.50"


def test_keys_as_tuples_of_several_types(tmp_path: Path) -> None:
    key, value = schema(user="string", at="timestamp", day="date", price="decimal(9,2)"), schema(n="long")
    location = StateLocation(tmp_path / "q", {"default": (key, value)})
    entries = [
        (row(key, f"u{number}", micros, number, f"{number}.25"), row(value, number))
        for number, micros in enumerate(MOMENTS)
    ]
    location.commit(Section(tuple(entries)))
    export(location, tmp_path / "s", key="tuple", value="rowdata")
    found = {each["key"]["f0"]: each for each in rows(tmp_path / "s")}
    for number, micros in enumerate(MOMENTS):
        each = found[f"u{number}"]
        assert each["key"]["f1"]["seconds"] * 1_000_000_000 + each["key"]["f1"]["nanos"] == micros * 1000
        assert each["key"]["f3"] == f"{number}.25"
        assert each["value"] == {"kind": 0, "f0": number}


def test_values_with_nested_types(tmp_path: Path) -> None:
    key, inner = schema(user="string"), schema(a="long", b="string")
    arrays: Schema = {"type": "array", "elementType": inner, "containsNull": True}
    maps: Schema = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    value = schema(items=arrays, table=maps, one=inner)
    location = StateLocation(tmp_path / "q", {"default": (key, value)}, name="flatMapGroupsWithState", state_format=1)
    content = ([{"a": 1, "b": None}], [("x", 1), ("y", None)], {"a": None, "b": "z"})
    location.commit(Section(((row(key, "a"), row(value, *content)), (row(key, "b"), row(value, None, [], None)))))
    exported = export(location, tmp_path / "s", key="string")
    assert exported.states[0].java.startswith('new ValueStateDescriptor<>("groupState", Types.ROW_NAMED(')
    found = {each["key"]: each["value"] for each in rows(tmp_path / "s", variable="groupState")}
    assert found["a"] == {
        "kind": 0,
        "f0": [{"kind": 0, "f0": 1, "f1": None}],
        "f1": [("x", 1), ("y", None)],
        "f2": {"kind": 0, "f0": None, "f1": "z"},
    }
    assert found["b"] == {"kind": 0, "f0": None, "f1": [], "f2": None}


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    location = all_types(tmp_path / "q")
    exported = export_plan(plan_of(location, "rowdata"), LocalStorage(tmp_path / "s"), dry_run=True)
    assert (exported.dry_run, exported.files, exported.bytes, exported.states[0].rows) == (True, None, None, None)
    assert not (tmp_path / "s").exists()


def test_progress(tmp_path: Path) -> None:
    location = all_types(tmp_path / "q")
    calls: list[tuple[int, int]] = []
    export_plan(plan_of(location, "rowdata"), LocalStorage(tmp_path / "s"), progress=lambda *call: calls.append(call))
    assert calls
    assert all(0 < done <= of for done, of in calls)
    assert calls[-1][0] == len(rows(location.path))


def test_a_key_that_cannot_be_hashed_is_refused_before_a_file(tmp_path: Path) -> None:
    key = schema(price="decimal(38,2)", raw="binary")
    location = StateLocation(tmp_path / "q", {"default": (key, schema(n="long"))})
    location.commit()
    with pytest.raises(UnsupportedForFlinkError) as caught:
        export(location, tmp_path / "s", key="tuple")
    assert UID in caught.value.operator
    assert not (tmp_path / "s").exists()
