"""Rows of a changed query."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spark_ckpt.evolution.columns import Column
from spark_ckpt.evolution.conversion import combined, constant, converted
from spark_ckpt.evolution.errors import EvolutionValueError
from spark_ckpt.spark_files.types import Struct, struct_of, type_of
from spark_ckpt.state.unsafe_row import binary_array, decode_rows
from spark_ckpt.state.unsafe_row_encoder import encode_rows, rows_of
from tests.support.state_location import schema


def structs(kind: Struct, *rows: dict[str, Any]) -> pa.StructArray:
    return pa.array(list(rows), kind.arrow)


def test_columns_move_widen_and_appear() -> None:
    old, new = struct_of(schema(a="integer", b="string")), struct_of(schema(b="string", a="long", c="long"))
    rows = structs(old, {"a": 1, "b": "x"}, {"a": None, "b": None})
    found = converted(rows, (Column(1), Column(0, is_widened=True), Column(None, "7")), new, "s")
    assert found.to_pylist() == [{"b": "x", "a": 1, "c": 7}, {"b": None, "a": None, "c": 7}]


def test_fields_of_a_struct_move_too() -> None:
    inner = {"type": "struct", "fields": schema(n="integer")["fields"]}
    more = {"type": "struct", "fields": schema(total="long", n="long")["fields"]}
    old, new = struct_of(schema(s=inner)), struct_of(schema(s=more))
    rows = structs(old, {"s": {"n": 1}}, {"s": None})
    column = Column(0, fields=(Column(None), Column(0, is_widened=True)))
    assert converted(rows, (column,), new, "s").to_pylist() == [{"s": {"total": None, "n": 1}}, {"s": None}]


def test_a_value_that_a_wider_type_lacks_is_named() -> None:
    old, new = struct_of(schema(a="long")), struct_of(schema(a="double"))
    with pytest.raises(EvolutionValueError, match=r"s, a: .*as a column of type double"):
        converted(structs(old, {"a": (1 << 53) + 1}), (Column(0, is_widened=True),), new, "s")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("0", "long", 0),
        ("0.0", "double", 0.0),
        ("true", "boolean", True),
        ("0.00", "decimal(10,2)", Decimal("0.00")),
        ("00ff", "binary", b"\x00\xff"),
        ("text", "string", "text"),
        (None, "long", None),
        (5, "integer", 5),
    ],
)
def test_constants(value: object, kind: str, expected: object) -> None:
    assert constant(value, type_of(kind), 2, "s").to_pylist() == [expected, expected]


@pytest.mark.parametrize(
    ("value", "kind"), [("x", "long"), ("zz", "binary"), ("a.b", "decimal(10,2)"), (1 << 40, "integer")]
)
def test_a_value_of_another_type_is_named(value: object, kind: str) -> None:
    with pytest.raises(EvolutionValueError, match=r"s: .* is no value of type"):
        constant(value, type_of(kind), 1, "s")


def test_rows_of_one_key_are_merged() -> None:
    kind = struct_of(schema(n="long", low="string", high="integer", one="long"))
    rows = structs(
        kind,
        {"n": 1, "low": "b", "high": None, "one": 9},
        {"n": 5, "low": None, "high": None, "one": 3},
        {"n": 2, "low": "a", "high": 4, "one": 8},
        {"n": None, "low": None, "high": None, "one": None},
    )
    values = binary_array(encode_rows(kind, rows)).to_pylist()
    keys, merged = combined([b"x", b"y", b"x", b"z"], values, ("sum", "min", "max", "any"), kind)
    assert keys == [b"x", b"y", b"z"]

    sizes = np.array([len(value) for value in merged], np.int64)
    found = decode_rows(kind, rows_of(np.frombuffer(b"".join(merged), np.uint8), sizes, "s")).to_pylist()
    assert found == [
        {"n": 3, "low": "a", "high": 4, "one": 9},
        {"n": 5, "low": None, "high": None, "one": 3},
        {"n": None, "low": None, "high": None, "one": None},
    ]


def test_a_sum_that_overflows_is_named() -> None:
    kind = struct_of(schema(n="long"))
    values = binary_array(encode_rows(kind, structs(kind, {"n": (1 << 63) - 1}, {"n": 1}))).to_pylist()
    with pytest.raises(EvolutionValueError, match="a sum does not fit"):
        combined([b"x", b"x"], values, ("sum",), kind)
