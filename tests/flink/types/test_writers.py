"""Columns encoded at once, against the bytes and hashes of real Flink and against the serializers one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.flink.streams import Value
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.binary_row import encode
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TimerSerializer,
    TtlSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.logical_types import LogicalType
from spark_ckpt.flink.streams.types.primitives import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    LONG,
    SHORT,
    SQL_COUNT_WINDOW,
    TIME_WINDOW,
    VOID_NAMESPACE,
)
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.flink.streams.types.times import INSTANT
from spark_ckpt.flink.streams.values import Instant, Row, RowData, Timestamp, TimeWindow, TtlValue
from spark_ckpt.flink.types.encoded_columns import BadValueError, Encoded, joined, ragged
from spark_ckpt.flink.types.lookup import arrow_type, writer_of
from spark_ckpt.metadata.data_output import DataOutput
from tests.flink.streams.types.flink_serializers import IN_PYTHON, TYPES, flink_serializers, timestamp

WRITTEN = [
    name
    for name, (serializer, values) in IN_PYTHON.items()
    if values and not isinstance(serializer, TimerSerializer) and serializer is not SQL_COUNT_WINDOW
]
"""All but timers, which have an encoder of their own, and windows of rows, which no state of Spark has."""
LONG_TEXT = "a text of more than seven bytes"


def in_arrow(serializer: Serializer, values: Sequence[Any]) -> pa.Array:
    arrow = arrow_type(serializer)
    return pa.array([arrow.of(value) for value in values], arrow.type)


def content_of(encoded: Encoded, rows: int) -> list[bytes]:
    found: list[bytes] = ragged(joined(encoded.parts, rows)).to_pylist()
    return found


def encoded(serializer: Serializer, values: Sequence[Any], *, codegen: bool = False) -> list[bytes]:
    return content_of(writer_of(serializer, codegen=codegen)(in_arrow(serializer, values)), len(values))


def one_by_one(serializer: Serializer, values: Sequence[Any]) -> list[bytes]:
    found = []
    for value in values:
        out = DataOutput()
        serializer.write(value, out, "value")
        found.append(out.getvalue())
    return found


@pytest.mark.parametrize("name", WRITTEN)
def test_bytes_and_hashes_are_those_of_flink(name: str) -> None:
    serializer, values = IN_PYTHON[name]
    flinks = flink_serializers()[name].values
    # A column in front and behind, so that an encoder that ignores the slice reads other values.
    array = in_arrow(serializer, (*values, *values, *values)).slice(len(values), len(values))
    found = writer_of(serializer)(array)
    assert content_of(found, len(values)) == [value.content for value in flinks]
    if found.hashes is not None and None not in values:
        hashes = found.hashes().view(np.int32).tolist()
        assert hashes == [value.hash_code for value in flinks if value.hash_code is not None]
    assert len(flinks) == len(values)


def test_all_types_with_a_known_hash_have_it_here() -> None:
    for name in WRITTEN:
        serializer, values = IN_PYTHON[name]
        known = serializer.hash_code(next(value for value in (*values, 0) if value is not None))
        found = writer_of(serializer)(in_arrow(serializer, values)).hashes
        # The value of a nullable one may be null, and Flink has no null keys.
        assert (known is not None) == (found is not None) or isinstance(serializer, NullableSerializer), name


@given(st.lists(st.text(max_size=200)))
def test_strings(texts: list[str]) -> None:
    found = writer_of(STRING)(pa.array(texts, pa.string()))
    assert content_of(found, len(texts)) == one_by_one(STRING, texts)
    assert found.hashes is not None
    assert found.hashes().tolist() == [STRING.hash_code(text) for text in texts]


@pytest.mark.parametrize("length", [126, 127, 16_382, 16_383, 2_097_151, 2_097_152])
def test_lengths_of_strings_take_as_many_bytes_as_they_need(length: int) -> None:
    texts = ["x" * length, "", "ä" * length]
    assert encoded(STRING, texts) == one_by_one(STRING, texts)


LOGICAL_TYPES = {name: kind for name, kind in TYPES.items() if not name.endswith(("ROWTIME", "PROCTIME"))}


def values_of(kind: LogicalType) -> st.SearchStrategy[Value]:
    integers = {
        "TINYINT": 8,
        "SMALLINT": 16,
        "INTEGER": 32,
        "BIGINT": 64,
        "INTERVAL_YEAR_MONTH": 32,
        "INTERVAL_DAY_TIME": 64,
    }
    if kind.root in integers:
        most = 1 << integers[kind.root] - 1
        return st.integers(-most, most - 1)
    if kind.root in ("FLOAT", "DOUBLE"):
        return st.floats(width=32, allow_nan=False)
    if kind.root in ("CHAR", "VARCHAR"):
        return st.text(max_size=20)
    if kind.root in ("BINARY", "VARBINARY"):
        return st.binary(max_size=20)
    if kind.root == "BOOLEAN":
        return st.booleans()
    if kind.root == "DATE":
        return st.integers(-(10**6), 10**6)
    if kind.root == "TIME_WITHOUT_TIME_ZONE":
        return st.integers(0, 86_399_999)
    if kind.root == "DECIMAL":
        precision, scale = kind.parameters
        most = 10**precision - 1
        return st.integers(-most, most).map(lambda number: Decimal((number < 0, _digits(number), -scale)))
    (precision,) = kind.parameters
    step = 1_000_000 if precision <= 3 else 1000 if precision <= 6 else 1
    return st.builds(
        Timestamp, st.integers(-(10**14), 10**14), st.integers(0, 999_999).map(lambda nanos: nanos // step * step)
    )


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


@pytest.mark.parametrize("codegen", [False, True])
@given(data=st.data())
def test_rows_of_sql(data: st.DataObject, codegen: bool) -> None:
    types = tuple(data.draw(st.lists(st.sampled_from([*LOGICAL_TYPES.values()]), min_size=1, max_size=6)))
    serializer = RowDataSerializer(types)
    fields = [values_of(kind) if not kind.nullable else st.none() | values_of(kind) for kind in types]
    rows = [
        RowData(kind, row)
        for kind, row in data.draw(st.lists(st.tuples(st.integers(0, 3), st.tuples(*fields)), max_size=5))
    ]
    expected = [encode(types, row.kind, row.fields, DataOutput(), "row", null_places=codegen) for row in rows]
    found = writer_of(serializer, codegen=codegen)(in_arrow(serializer, rows))
    assert content_of(found, len(rows)) == [len(row).to_bytes(4, "big") + row for row in expected]
    assert found.hashes is not None
    hashes = [serializer.hash_code(replace_binary(row, binary)) for row, binary in zip(rows, expected, strict=True)]
    assert found.hashes().tolist() == hashes


def replace_binary(row: RowData, binary: bytes) -> RowData:
    return row._replace(binary=binary)


def test_a_null_key_of_generated_code_keeps_its_place() -> None:
    serializer = RowDataSerializer((timestamp(6), LogicalType("DECIMAL", (38, 0)), LogicalType("BIGINT")))
    rows = [RowData(0, (None, None, 1)), RowData(0, (Timestamp(1), Decimal(5), 1))]
    plain, generated = (encoded(serializer, rows, codegen=codegen) for codegen in (False, True))
    assert plain[1] == generated[1]
    assert (len(plain[0]), len(generated[0])) == (4 + 32, 4 + 32 + 8 + 16)


COMPOSITES: dict[str, tuple[Serializer, list[Any]]] = {
    "lists of strings": (ListSerializer((STRING,)), [("a", "ä" * 3), (), (LONG_TEXT,)]),
    "lists of nothing": (ListSerializer((LONG,)), [(), ()]),
    "lists of lists": (ListSerializer((ListSerializer((INT,)),)), [((1, 2), ()), ()]),
    "maps": (MapSerializer((LONG, STRING)), [((1, "a"), (2, None)), (), ((3, LONG_TEXT),)]),
    "maps of maps": (MapSerializer((STRING, MapSerializer((SHORT, BOOLEAN)))), [(("a", ((1, True),)), ("b", ()))]),
    "nullable tuples": (NullableSerializer((TupleSerializer.of(STRING, DOUBLE),)), [("a", 1.5), None, ("", -0.0)]),
    "nullable times": (NullableSerializer((INSTANT,)), [Instant(1, 2), None]),
    "padded": (NullableSerializer((LONG,), 8), [1, None, 3]),
    "tuples": (TupleSerializer.of(BOOLEAN, TupleSerializer.of(LONG, STRING), SHORT), [(True, (1, "a"), -2)]),
    "rows": (RowSerializer((STRING, DOUBLE, LONG)), [Row(1, (None, 1.5, None)), Row(0, ("ä", None, -1))]),
    "rows without kind": (RowSerializer((LONG,), has_row_kind=False), [Row(0, (None,)), Row(0, (5,))]),
    "ttl": (TtlSerializer((LONG, STRING)), [TtlValue(5, "a"), TtlValue(-5, LONG_TEXT)]),
    "ttl of bytes": (TtlSerializer((LONG, BYTES)), [TtlValue(5, b"\0,")]),
    "windows": (TIME_WINDOW, [TimeWindow(-1, 5)]),
    "lists of rows": (
        ListSerializer((RowDataSerializer((LogicalType("BIGINT"), LogicalType("VARCHAR", (9,)))),)),
        [(RowData(0, (1, None)), RowData(0, (None, LONG_TEXT)))],
    ),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_values(name: str) -> None:
    serializer, values = COMPOSITES[name]
    assert encoded(serializer, values) == one_by_one(serializer, values)


@pytest.mark.parametrize("name", ["tuples", "rows", "rows without kind"])
def test_composite_keys(name: str) -> None:
    serializer, values = COMPOSITES[name]
    found = writer_of(serializer)(in_arrow(serializer, values)).hashes
    assert found is not None
    assert found().tolist() == [(serializer.hash_code(value) or 0) & 0xFFFFFFFF for value in values]


def test_every_nan_is_that_of_java() -> None:
    other = np.array([0xFFF8000000000001], np.uint64).view(np.float64)
    assert math.isnan(other[0])
    found = writer_of(DOUBLE)(pa.array(other))
    assert content_of(found, 1) == one_by_one(DOUBLE, [math.nan])
    assert found.hashes is not None
    assert found.hashes().tolist() == [DOUBLE.hash_code(math.nan)]
    row = RowDataSerializer((LogicalType("DOUBLE"),))
    array = pa.array([{"kind": 0, "f0": other[0]}], arrow_type(row).type)
    assert content_of(writer_of(row)(array), 1) == one_by_one(row, [RowData(0, (math.nan,))])


@pytest.mark.parametrize(
    ("serializer", "values", "index", "reason"),
    [
        (LONG, [1, None], 1, "a null"),
        (BOOLEAN, [None], 0, "a null"),
        (BYTES, [b"", None], 1, "a null"),
        (TupleSerializer.of(LONG, LONG), [(1, 2), (1, None)], 1, "a null"),
        (ListSerializer((LONG,)), [(1, None)], None, "a value within: a null"),
        (
            NullableSerializer(
                (
                    TupleSerializer.of(
                        LONG,
                    ),
                )
            ),
            [None, (1,), None, (None,)],
            3,
            "a null",
        ),
        (RowSerializer((LONG,)), [Row(0, (1,)), Row(4, (1,))], 1, "a row kind that is not 0 to 3"),
        (RowDataSerializer((LogicalType("BIGINT", nullable=False),)), [RowData(0, (None,))], 0, "a null in field 0"),
        (RowDataSerializer((timestamp(3),)), [RowData(0, (Timestamp(1, 5000),))], 0, "field 0: a fraction"),
        (RowDataSerializer((timestamp(9),)), [RowData(0, (Timestamp(1, 1_000_000),))], 0, "field 0: nanoseconds"),
        (IN_PYTHON["enum"][0], ["RED", "BLUE"], 1, "no constant of"),
    ],
)
def test_values_that_do_not_fit(serializer: Serializer, values: list[Any], index: int | None, reason: str) -> None:
    with pytest.raises(BadValueError, match=reason) as error:
        encoded(serializer, values)
    assert error.value.index == index


def test_no_rows() -> None:
    for name in WRITTEN:
        serializer, _ = IN_PYTHON[name]
        found = writer_of(serializer)(in_arrow(serializer, []))
        assert content_of(found, 0) == []
        if found.hashes is not None:
            assert found.hashes().size == 0


def test_rows_without_fields() -> None:
    """Keys of an aggregate of SQL without `GROUP BY`."""
    serializer = RowDataSerializer(())
    found = writer_of(serializer)(in_arrow(serializer, [RowData(0, ())] * 2))
    assert content_of(found, 2) == one_by_one(serializer, [RowData(0, ())] * 2)
    assert found.hashes is not None
    assert found.hashes().tolist() == [serializer.hash_code(RowData(0, ()))] * 2


def test_a_void_namespace_is_a_byte() -> None:
    assert encoded(VOID_NAMESPACE, [None, None]) == [b"\0", b"\0"]


def test_a_serializer_of_a_type_is_replaced_by_no_other() -> None:
    # `replace` gives an equal serializer that is another object: encoders are found by content.
    assert encoded(replace(LONG), [1]) == one_by_one(LONG, [1])
