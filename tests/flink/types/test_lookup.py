from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_ckpt.flink.types.lookup import arrow_type
from tests.flink.streams.types.flink_serializers import ALL, IN_PYTHON, LONG_TEXT, READ_ONLY

EVERY = {**IN_PYTHON, **READ_ONLY}


@pytest.mark.parametrize("name", [name for name, (_, values) in EVERY.items() if values])
def test_arrow_holds_each_value_of_flink(name: str) -> None:
    serializer, values = EVERY[name]
    arrow = arrow_type(serializer)
    array = pa.array([*map(arrow.of, values), None], arrow.type)
    assert len(array) == len(values) + 1
    nulls = [value is None for value in values]
    # The only value of a namespace without content is null.
    assert array.is_null().to_pylist() == [*nulls, True]


def test_a_row_of_sql_has_the_types_of_arrow() -> None:
    serializer, (row, _) = IN_PYTHON["rowdata<all>"]
    arrow = arrow_type(serializer)
    found = list(pa.array([arrow.of(row)], arrow.type)[0].as_py().values())
    assert len(found) == 1 + len(ALL)
    assert found[8:] == [
        datetime.date(2022, 1, 8),
        datetime.time(0, 0, 1, 234000),
        "abc",
        bytes(range(1, 10)),
        Decimal("1.50"),
        Decimal("-1.50"),
        Decimal("9" * 38),
        datetime.datetime(1969, 12, 31, 23, 59, 58, 766000),
        datetime.datetime(1969, 12, 31, 23, 59, 58, 766567),
        {"millis": 1234, "nanos": 999_999},
    ]


def test_rows_and_tuples_are_structs() -> None:
    serializer, (first, _) = IN_PYTHON["row<string,long,int>"]
    assert arrow_type(serializer).of(first) == {"kind": 0, "f0": "a", "f1": 1, "f2": None}
    serializer, (first, _) = IN_PYTHON["tuple2<string,long>"]
    assert arrow_type(serializer).of(first) == {"f0": "a", "f1": 1}


def test_nested_types_of_sql_are_those_of_arrow() -> None:
    serializer, (row, _) = READ_ONLY["rowdata<nested>"]
    arrow = arrow_type(serializer)
    found = pa.array([arrow.of(row)], arrow.type)[0].as_py()
    assert found == {
        "kind": 0,
        "f0": ["ab", None, LONG_TEXT],
        "f1": [Decimal("-1.50"), None],
        "f2": [datetime.datetime(1969, 12, 31, 23, 59, 58, 766567), None],
        "f3": [[LONG_TEXT], None, []],
        "f4": [{"id": 1, "name": LONG_TEXT}, None, {"id": None, "name": "ab"}],
        "f5": {"id": 2, "name": None},
        "f6": b"\1",
    }
    serializer, (row, _) = READ_ONLY["rowdata<maps>"]
    arrow = arrow_type(serializer)
    found = pa.array([arrow.of(row)], arrow.type)[0].as_py()
    assert found == {
        "kind": 0,
        "f0": [("ab", 1), (LONG_TEXT, None)],
        "f1": [(7, [LONG_TEXT, None])],
        "f2": [(LONG_TEXT, 3)],
        "f3": [("ab", {"id": 1, "name": LONG_TEXT})],
    }


def test_a_pojo_is_a_struct() -> None:
    serializer, (first, *_) = IN_PYTHON["pojo<order>"]
    assert arrow_type(serializer).of(first) == {
        "amount": 1,
        "at": {"seconds": 3, "nanos": 5},
        "colour": "GREEN",
        "inner": {"number": 7},
        "name": "a",
        "parts": [1, 2],
    }


def test_a_record_of_avro_is_a_struct() -> None:
    serializer, values = READ_ONLY["avro"]
    arrow = arrow_type(serializer)
    first, second = pa.array([*map(arrow.of, values)], arrow.type).to_pylist()
    assert first == {
        "s": "hä",
        "i": -5,
        "l": 1 << 40,
        "f": 1.5,
        "d": -2.5,
        "b": True,
        "bytes": b"\1\2",
        "fixed": b"\3\4\5",
        "enum": "GREEN",
        "optional": "here",
        "several": {"string": None, "long": 7},
        "array": [1, 2, 3],
        "map": [("k", 1)],
        "nested": {"x": 9},
        "millis": datetime.datetime(1969, 12, 31, 23, 59, 58, 766000, datetime.timezone.utc),
        "micros": datetime.datetime(1970, 1, 1, 0, 0, 1, 234567, datetime.timezone.utc),
        "day": datetime.date(2022, 1, 8),
        "price": Decimal("-1.50"),
    }
    assert (second["optional"], second["several"], second["array"], second["map"]) == (None, None, [], [])
