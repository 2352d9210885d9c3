"""Values of Spark as values of Flink's DataStream API, judged by Python's calendar and by Flink's serializers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.flink.export.export_type import NotForFlinkError, NullValueError
from spark_ckpt.flink.export.plain_types import plain_type, tuple_type
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.spark_files.types import SparkType, type_of
from tests.flink.export.spark_json import array_of, map_of, struct

EPOCH = datetime(1970, 1, 1)


def spark(json: object) -> SparkType:
    return type_of(json)


def converted(json: object, values: list[Any]) -> list[Any]:
    kind = spark(json)
    flink = plain_type(kind)
    array = flink.of(pa.array(values, kind.arrow))
    assert array.type == arrow_type(flink.serializer).type
    array.validate(full=True)
    result: list[Any] = array.to_pylist()
    return result


@pytest.mark.parametrize(
    ("json", "java", "values"),
    [
        ("boolean", "Types.BOOLEAN", [True, None]),
        ("byte", "Types.BYTE", [-128, None]),
        ("short", "Types.SHORT", [-(1 << 15), None]),
        ("integer", "Types.INT", [-(1 << 31), None]),
        ("long", "Types.LONG", [-(1 << 63), None]),
        ("float", "Types.FLOAT", [0.5, None]),
        ("double", "Types.DOUBLE", [0.1, None]),
        ("string", "Types.STRING", ["ü", "", None]),
        ("binary", "Types.PRIMITIVE_ARRAY(Types.BYTE)", [b"\x00", None]),
    ],
)
def test_values_that_stay_as_they_are(json: str, java: str, values: list[Any]) -> None:
    assert plain_type(spark(json)).java == java
    assert converted(json, values) == values


moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)) | st.datetimes(
    datetime(1969, 12, 31), datetime(1970, 1, 2)
)


@given(st.lists(moments | st.none()))
def test_a_timestamp_is_an_instant(values: list[datetime | None]) -> None:
    """The nanoseconds are never negative, as those of `Instant`."""
    found = converted("timestamp", [value and value.replace(tzinfo=timezone.utc) for value in values])
    for value, instant in zip(values, found, strict=True):
        if value is None:
            assert instant is None
            continue
        assert 0 <= instant["nanos"] < 10**9
        since = timedelta(seconds=instant["seconds"], microseconds=instant["nanos"] // 1000)
        assert EPOCH + since == value


@given(st.lists(moments | st.none()))
def test_a_timestamp_without_zone_is_a_local_date_time(values: list[datetime | None]) -> None:
    expected = [value and {"date": parts_of(value.date()), "time": parts_of_time(value.time())} for value in values]
    assert converted("timestamp_ntz", values) == expected


@given(st.lists(st.dates() | st.none()))
def test_a_date_is_a_local_date(values: list[date | None]) -> None:
    assert converted("date", values) == [value and parts_of(value) for value in values]


def test_a_time_is_a_local_time() -> None:
    kind = plain_type(spark("time(6)"))
    found = kind.of(pa.array([86_399_999_999_999, None], pa.time64("ns"))).to_pylist()
    assert found == [{"hour": 23, "minute": 59, "second": 59, "nanos": 999_999_999}, None]


def parts_of(value: date) -> dict[str, int]:
    return {"year": value.year, "month": value.month, "day": value.day}


def parts_of_time(value: time) -> dict[str, int]:
    return {"hour": value.hour, "minute": value.minute, "second": value.second, "nanos": value.microsecond * 1000}


def test_decimals_keep_their_scale() -> None:
    assert converted("decimal(20,2)", [Decimal("1.50"), Decimal("-0.10"), None]) == ["1.50", "-0.10", None]


def test_intervals_are_numbers() -> None:
    assert converted("interval day to second", [timedelta(microseconds=-1), None]) == [-1, None]
    assert converted("interval year to month", [-13, None]) == [-13, None]


def test_arrays_maps_and_structs() -> None:
    lists = converted(array_of("date"), [[date(2024, 2, 29)], [], None])
    assert lists == [[{"year": 2024, "month": 2, "day": 29}], [], None]
    maps = converted(map_of("string", "decimal(5,1)"), [[("a", Decimal("1.5")), ("b", None)], None, [], [("c", None)]])
    assert maps == [[("a", "1.5"), ("b", None)], None, [], [("c", None)]]
    rows = converted(struct(a="long", b=struct(c="string")), [{"a": 1, "b": {"c": None}}, {"a": None, "b": None}, None])
    assert rows == [
        {"kind": 0, "f0": 1, "f1": {"kind": 0, "f0": None}},
        {"kind": 0, "f0": None, "f1": None},
        None,
    ]
    java = plain_type(spark(struct(a="long", b=array_of(map_of("string", "date"))))).java
    assert java == (
        'Types.ROW_NAMED(new String[] {"a", "b"}, Types.LONG, Types.LIST(Types.MAP(Types.STRING, Types.LOCAL_DATE)))'
    )


@pytest.mark.parametrize("json", [array_of("decimal(5,1)"), map_of("string", "decimal(5,1)"), struct(a="date")])
def test_a_part_of_an_array_converts_like_a_copy_of_it(json: object) -> None:
    """Arrow's buffers of a slice have the values outside of it too."""
    kind = spark(json)
    values: list[Any] = [None, [("a", Decimal("1.5"))], [], [("b", None), ("c", Decimal("2.5"))], None]
    if kind.arrow == pa.list_(pa.decimal128(5, 1)):
        values = [None, [Decimal("1.5")], [], [Decimal("2.5"), Decimal("3.5")], None]
    if pa.types.is_struct(kind.arrow):
        values = [None, {"a": date(1, 1, 1)}, {"a": None}, {"a": date(1969, 12, 31)}, None]
    flink, whole = plain_type(kind), pa.array(values, kind.arrow)
    for start in range(6):
        for length in range(6 - start):
            part = flink.of(whole.slice(start, length))
            part.validate(full=True)
            assert part.to_pylist() == flink.of(pa.array(values[start : start + length], kind.arrow)).to_pylist()


def test_names_in_java() -> None:
    java = plain_type(spark({"type": "struct", "fields": [{"name": 'a"\\\n', "type": "long"}]})).java
    assert java == 'Types.ROW_NAMED(new String[] {"a\\"\\\\\\n"}, Types.LONG)'


@pytest.mark.parametrize("json", ["void", "interval", "variant", struct(), array_of("variant")])
def test_what_flink_has_no_type_for(json: object) -> None:
    with pytest.raises(NotForFlinkError, match="Flink has no type for Spark's"):
        plain_type(spark(json))


def test_an_element_that_is_null() -> None:
    with pytest.raises(NullValueError, match="an element of an array is null"):
        converted(array_of("long"), [[1], [None]])


def test_tuples() -> None:
    kind = pa.struct([("a", pa.string()), ("b", pa.date32())])
    flink = tuple_type(("a", "b"), (spark("string"), spark("date")), "do this")
    assert flink.java == "Types.TUPLE(Types.STRING, Types.LOCAL_DATE)"
    found = flink.of(pa.array([{"a": "x", "b": date(1, 2, 3)}], kind))
    assert found.type == arrow_type(flink.serializer).type
    assert found.to_pylist() == [{"f0": "x", "f1": {"year": 1, "month": 2, "day": 3}}]
    with pytest.raises(
        NullValueError, match="b is null, which this serializer of Flink cannot hold: do this"
    ) as caught:
        flink.of(pa.array([{"a": "x", "b": date(1, 2, 3)}, {"a": "x", "b": None}], kind))
    assert caught.value.row == 1


@pytest.mark.parametrize("number", [0, 26])
def test_tuples_have_1_to_25_fields(number: int) -> None:
    with pytest.raises(NotForFlinkError, match=f"{number} columns are no tuple of Flink"):
        tuple_type(("a",) * number, (spark("long"),) * number, "")
