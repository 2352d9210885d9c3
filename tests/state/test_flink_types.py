from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from spark_ckpt.state.flink_types import arrow_type
from tests.metadata.streams.types.flink_serializers import ALL, IN_PYTHON


@pytest.mark.parametrize("name", [name for name, (_, values) in IN_PYTHON.items() if values])
def test_arrow_holds_each_value_of_flink(name: str) -> None:
    serializer, values = IN_PYTHON[name]
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
