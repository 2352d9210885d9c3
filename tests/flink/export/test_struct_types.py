"""Forms of keys and values."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from spark_ckpt.flink.export.export_type import NotForFlinkError, NullValueError
from spark_ckpt.flink.export.struct_types import KeyForm, ValueForm, key_type, value_type
from spark_ckpt.flink.types.lookup import arrow_type
from spark_ckpt.spark_files.types import struct_of
from tests.flink.export.spark_json import array_of, struct

WINDOW = struct(window=struct(start="timestamp", end="timestamp"), user="string")
START, END = datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 2, tzinfo=timezone.utc)


def keys(json: object, form: KeyForm, rows: list[Any]) -> list[Any]:
    kind = struct_of(json)
    flink = key_type(kind, form)
    found = flink.of(pa.array(rows, kind.arrow))
    assert found.type == arrow_type(flink.serializer).type
    result: list[Any] = found.to_pylist()
    return result


def test_keys_of_one_column() -> None:
    assert keys(struct(id="long"), KeyForm.LONG, [{"id": -5}]) == [-5]
    assert keys(struct(id="short"), KeyForm.LONG, [{"id": -5}]) == [-5]
    assert keys(struct(id="integer"), KeyForm.INT, [{"id": -5}]) == [-5]
    assert keys(struct(user="string"), KeyForm.STRING, [{"user": "a"}]) == ["a"]
    assert keys(struct(key=struct(user="string")), KeyForm.STRING, [{"key": {"user": "a"}}]) == ["a"]


def test_keys_of_several_columns() -> None:
    rows = [{"window": {"start": START, "end": END}, "user": "a"}]
    instants = [{"seconds": int(at.timestamp()), "nanos": 0} for at in (START, END)]
    assert keys(WINDOW, KeyForm.TUPLE, rows) == [{"f0": instants[0], "f1": instants[1], "f2": "a"}]
    assert keys(WINDOW, KeyForm.ROW_DATA, rows) == [{"kind": 0, "f0": START, "f1": END, "f2": "a"}]


def test_an_aggregate_without_grouping_has_an_empty_row_as_key() -> None:
    kind = struct_of(struct())
    flink = key_type(kind, KeyForm.ROW_DATA)
    found = flink.of(pa.Array.from_buffers(kind.arrow, 1, [None]))
    assert found.to_pylist() == [{"kind": 0}]


@pytest.mark.parametrize(
    ("json", "form", "reason"),
    [
        (struct(a="string"), KeyForm.LONG, "the key is a string, not long: use --key tuple or --key rowdata"),
        (struct(a="long"), KeyForm.INT, "the key is a int64, not int: use"),
        (struct(a="long"), KeyForm.STRING, "the key is a int64, not a string: use"),
        (struct(a="long", b="long"), KeyForm.LONG, "the key is a int64, b int64, not one column: use"),
        (struct(), KeyForm.STRING, "the key is no column, not one column"),
        (
            struct(a="binary"),
            KeyForm.TUPLE,
            "column a: Java's hash of binary is no hash of its content; use --key rowdata",
        ),
        (struct(a=array_of("long")), KeyForm.TUPLE, "column a: Java's hash of list"),
        (struct(a=array_of("long")), KeyForm.ROW_DATA, r"column a: list<.*> has no type in a flat row of Flink SQL"),
        (struct(), KeyForm.TUPLE, "0 columns are no tuple of Flink"),
    ],
)
def test_keys_that_do_not_have_the_form(json: object, form: KeyForm, reason: str) -> None:
    with pytest.raises(NotForFlinkError, match=reason):
        key_type(struct_of(json), form)


def test_nulls_in_keys() -> None:
    """Only rows of Flink SQL can hold them."""
    assert keys(struct(a="string"), KeyForm.ROW_DATA, [{"a": None}]) == [{"kind": 0, "f0": None}]
    for form in (KeyForm.STRING, KeyForm.TUPLE):
        with pytest.raises(NullValueError, match=r"a is null, .*: export with --key rowdata") as caught:
            keys(struct(a="string"), form, [{"a": "x"}, {"a": None}])
        assert caught.value.row == 1
    with pytest.raises(NullValueError, match=r"window is null, .*: a struct within a row must not be null"):
        keys(WINDOW, KeyForm.ROW_DATA, [{"window": None, "user": "a"}])


def values(json: object, form: ValueForm, rows: list[Any], **options: Any) -> list[Any]:
    kind = struct_of(json)
    flink = value_type(kind, form, **options)
    found = flink.of(pa.array(rows, kind.arrow))
    assert found.type == arrow_type(flink.serializer).type
    result: list[Any] = found.to_pylist()
    return result


def test_forms_of_values() -> None:
    one, flat, deep = struct(n="long"), struct(n="long", s="string"), struct(n="long", s=array_of("string"))
    assert values(one, ValueForm.PLAIN, [{"n": 1}]) == [1]
    assert values(one, ValueForm.ROW_DATA, [{"n": None}]) == [{"kind": 0, "f0": None}]
    assert values(one, ValueForm.ROW, [{"n": None}]) == [{"kind": 0, "f0": None}]
    assert values(flat, ValueForm.PLAIN, [{"n": 1, "s": None}]) == [{"kind": 0, "f0": 1, "f1": None}]
    assert values(deep, ValueForm.PLAIN, [{"n": 1, "s": ["a"]}]) == [{"kind": 0, "f0": 1, "f1": ["a"]}]
    assert value_type(struct_of(flat), ValueForm.PLAIN).java.startswith("InternalTypeInfo.ofFields(")
    assert value_type(struct_of(deep), ValueForm.PLAIN).java.startswith("Types.ROW_NAMED(")
    with pytest.raises(NotForFlinkError, match="a value without columns"):
        value_type(struct_of(struct()), ValueForm.PLAIN)


def test_a_single_value_that_is_null() -> None:
    """Value and list states hold none; map states do."""
    assert values(struct(n="long"), ValueForm.PLAIN, [{"n": None}], may_be_null=True) == [None]
    with pytest.raises(NullValueError, match=r"n is null, .*: export with --value rowdata or --value row"):
        values(struct(n="long"), ValueForm.PLAIN, [{"n": None}])


def test_types_of_sql() -> None:
    kinds = {
        "boolean": "new BooleanType()",
        "byte": "new TinyIntType()",
        "short": "new SmallIntType()",
        "integer": "new IntType()",
        "long": "new BigIntType()",
        "float": "new FloatType()",
        "double": "new DoubleType()",
        "string": "new VarCharType(VarCharType.MAX_LENGTH)",
        "binary": "new VarBinaryType(VarBinaryType.MAX_LENGTH)",
        "date": "new DateType()",
        "timestamp": "new LocalZonedTimestampType(6)",
        "timestamp_ntz": "new TimestampType(6)",
        "decimal(20,3)": "new DecimalType(20, 3)",
        "interval day to second": "new BigIntType()",
        "interval year to month": "new IntType()",
    }
    kind = struct_of(struct(**{f"f{number}": each for number, each in enumerate(kinds)}))
    flink = value_type(kind, ValueForm.ROW_DATA)
    assert flink.java == f"InternalTypeInfo.ofFields({', '.join(kinds.values())})"
    assert flink.of(pa.array([{}, None], kind.arrow)).type == arrow_type(flink.serializer).type
