"""Which types fit, and what becomes of values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt.flink.importing.column_conversion import Fit, UnfitValueError, fit_rows
from spark_ckpt.flink.importing.errors import FlinkTypeError
from spark_ckpt.spark_files.types import struct_of
from tests.support.state_location import schema

INSTANT = pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())])
TIMESTAMP = pa.struct([("millis", pa.int64()), ("nanos", pa.int32())])
ROW = pa.struct([("kind", pa.int8()), ("f0", pa.string()), ("f1", pa.int64())])


def fit(
    source: pa.DataType, *, order: list[str] | None = None, required: frozenset[str] = frozenset(), **types: Any
) -> Fit:
    return fit_rows(source, struct_of(schema(**types)), "state", "value", order=order, required=required)


def converted(source: pa.DataType, values: list[Any], **types: Any) -> list[Any]:
    found = fit(source, **types).convert(pa.array(values, source))
    assert found.type == struct_of(schema(**types)).arrow
    found.validate(full=True)
    rows: list[Any] = found.to_pylist()
    return rows


@pytest.mark.parametrize(
    ("source", "kind", "value", "expected"),
    [
        (pa.int32(), "long", -5, -5),
        (pa.int8(), "short", 5, 5),
        (pa.float32(), "double", 0.5, 0.5),
        (pa.decimal128(5, 2), "decimal(20,2)", Decimal("1.25"), Decimal("1.25")),
        (pa.list_(pa.int32()), {"type": "array", "elementType": "long"}, [1, None], [1, None]),
        (
            pa.map_(pa.string(), pa.float32()),
            {"type": "map", "keyType": "string", "valueType": "double"},
            [("a", 0.5)],
            [("a", 0.5)],
        ),
        (pa.string(), "string", None, None),
    ],
)
def test_values_that_fit(source: pa.DataType, kind: Any, value: Any, expected: Any) -> None:
    assert converted(source, [value, value], only=kind) == [{"only": expected}] * 2


def test_moments() -> None:
    (found,) = converted(pa.timestamp("ms", "UTC"), [-1], at="timestamp")
    assert found["at"].timestamp() == -0.001
    (found,) = converted(INSTANT, [{"seconds": -1, "nanos": 1000}], at="timestamp")
    assert found["at"].timestamp() == -0.999999
    (found, none) = converted(TIMESTAMP, [{"millis": 1500, "nanos": 500_007_000}, None], at="timestamp")
    assert found["at"].timestamp() == 1.500007
    assert none == {"at": None}


def test_rows_fit_by_position_and_objects_by_name() -> None:
    row = {"kind": 0, "f0": "a", "f1": 7}
    assert converted(ROW, [row], name="string", n="long") == [{"name": "a", "n": 7}]
    named = pa.struct([("n", pa.int32()), ("name", pa.string())])
    assert converted(named, [{"n": 7, "name": "a"}], name="string", n="long") == [{"name": "a", "n": 7}]


def test_another_order() -> None:
    found = fit(ROW, order=["f1", "f0"], n="long", name="string")
    assert found.columns[0] == ("value.f1", "value.n", "int64", "int64")
    row = pa.array([{"kind": 0, "f0": "a", "f1": 7}], ROW)
    assert found.convert(row).to_pylist() == [{"n": 7, "name": "a"}]
    assert fit(ROW, order=["f1"], n="long").convert(row).to_pylist() == [{"n": 7}]


def test_rows_within_rows() -> None:
    nested = {"type": "struct", "fields": schema(a="string", b="long")["fields"]}
    source = pa.struct([("f0", pa.int32()), ("f1", ROW)])
    values: list[dict[str, Any]] = [{"f0": 1, "f1": {"kind": 0, "f0": "x", "f1": 2}}, {"f0": 3, "f1": None}]
    expected = [{"n": 1, "inner": {"a": "x", "b": 2}}, {"n": 3, "inner": None}]
    assert converted(source, values, n="long", inner=nested) == expected
    listed = {"type": "array", "elementType": nested}
    assert converted(pa.list_(ROW), [[values[0]["f1"], None]], l=listed) == [{"l": [{"a": "x", "b": 2}, None]}]


@pytest.mark.parametrize(
    ("source", "types", "column"),
    [
        (pa.int64(), {"a": "integer"}, "value"),
        (pa.int64(), {"a": "double"}, "value"),
        (pa.int64(), {"a": "timestamp"}, "value"),
        (pa.string(), {"a": "binary"}, "value"),
        (pa.float64(), {"a": "float"}, "value"),
        (pa.decimal128(20, 2), {"a": "decimal(10,2)"}, "value"),
        (pa.decimal128(5, 2), {"a": "decimal(20,3)"}, "value"),
        (pa.timestamp("us"), {"a": "timestamp"}, "value"),
        (pa.int64(), {"a": "long", "b": "long"}, "value"),
        (ROW, {"a": "string"}, "value"),
        (ROW, {"a": "string", "b": "integer"}, "value.f1"),
        (pa.struct([("x", pa.int64()), ("y", pa.int64())]), {"a": "long", "b": "long"}, "value"),
        (pa.list_(pa.int64()), {"a": {"type": "array", "elementType": "string"}}, "value.element"),
        (pa.struct([("class", pa.string()), ("bytes", pa.binary())]), {"a": "binary"}, "value"),
        (pa.int64(), {"a": "interval"}, "value"),
    ],
)
def test_types_that_do_not_fit(source: pa.DataType, types: dict[str, Any], column: str) -> None:
    with pytest.raises(FlinkTypeError) as refused:
        fit(source, **types)
    assert (refused.value.state, refused.value.column) == ("state", column)


@pytest.mark.parametrize("order", [["f0"], ["f0", "f0"], ["f0", "f2"]])
def test_orders_that_do_not_fit(order: list[str]) -> None:
    with pytest.raises(FlinkTypeError, match="does not name 2 of its fields"):
        fit(ROW, order=order, a="string", b="long")


@pytest.mark.parametrize(
    ("source", "value", "types", "reason"),
    [
        (INSTANT, {"seconds": 0, "nanos": 1}, {"a": "timestamp"}, "finer than microseconds"),
        (INSTANT, {"seconds": 2**60, "nanos": 0}, {"a": "timestamp"}, "beyond the range"),
        (pa.timestamp("ms", "UTC"), 2**62, {"a": "timestamp"}, "does not fit"),
        (ROW, {"kind": 3, "f0": "a", "f1": 1}, {"a": "string", "b": "long"}, "a row of kind 3"),
    ],
)
def test_values_that_do_not_fit(source: pa.DataType, value: Any, types: dict[str, Any], reason: str) -> None:
    good = {"kind": 0, "f0": "a", "f1": 1} if source == ROW else None
    with pytest.raises(UnfitValueError, match=reason) as refused:
        fit(source, **types).convert(pa.array([good, value], source))
    assert refused.value.index in (0, 1)
    if "fit" not in reason:
        assert refused.value.index == 1


def test_a_null_in_a_column_that_has_none() -> None:
    found = fit(pa.int64(), required=frozenset({"a"}), a="long")
    assert found.convert(pa.array([1], pa.int64())).to_pylist() == [{"a": 1}]
    with pytest.raises(UnfitValueError, match="a null where the query's column has none") as refused:
        found.convert(pa.array([1, None], pa.int64()))
    assert refused.value.index == 1


def test_rows_without_fields() -> None:
    """The key of an aggregation without grouping."""
    empty = pa.struct([("kind", pa.int8())])
    assert converted(empty, [{"kind": 0}, {"kind": 0}]) == [{}, {}]
