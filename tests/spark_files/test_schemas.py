from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.spark_files.schemas import FamilySchema, decode_schema, with_nullable_columns
from spark_ckpt.spark_files.types import struct_of
from tests.support.state_location import Schema, chunks, schema, schema_v1, schema_v2, schema_v3, utf

KEY = schema(user="string", at="timestamp")
VALUE = schema(n="long", parts={"type": "array", "elementType": "decimal(20,2)", "containsNull": True})


def test_version_1() -> None:
    assert decode_schema(schema_v1(KEY, VALUE), "file") == (FamilySchema("default", struct_of(KEY), struct_of(VALUE)),)


def test_version_2_in_several_chunks() -> None:
    assert decode_schema(schema_v2(KEY, VALUE), "file") == decode_schema(schema_v1(KEY, VALUE), "file")


def test_version_3() -> None:
    families: dict[str, tuple[Schema, Schema]] = {"count": (KEY, VALUE), "$ttl_count": (VALUE, KEY)}
    assert decode_schema(schema_v3(families), "file") == (
        FamilySchema("count", struct_of(KEY), struct_of(VALUE)),
        FamilySchema("$ttl_count", struct_of(VALUE), struct_of(KEY)),
    )


def test_nullable_columns() -> None:
    strict: Schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": False, "metadata": {"nullable": False}},
            {
                "name": "nested",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "array", "elementType": "long", "containsNull": False},
                    "valueContainsNull": False,
                },
                "nullable": False,
                "metadata": {},
            },
        ],
    }
    (widened,) = decode_schema(with_nullable_columns(schema_v2(strict, VALUE), "file"), "file")
    first, second = strict["fields"]
    array = {"type": "array", "elementType": "long", "containsNull": True}
    kind = {"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True}
    fields = [{**first, "nullable": True}, {**second, "nullable": True, "type": kind}]
    assert widened.key == struct_of({"type": "struct", "fields": fields})
    assert b'"metadata":{"nullable":false}' in with_nullable_columns(schema_v2(strict, VALUE), "file")
    assert with_nullable_columns(schema_v1(KEY, VALUE), "file") == schema_v1(KEY, VALUE)
    with pytest.raises(StateSchemaError):
        with_nullable_columns(schema_v2(KEY, VALUE)[:40], "file")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "2 bytes needed"),
        (utf("v4"), "unknown schema version 'v4'"),
        (utf("v2") + chunks(schema(a="money")) + chunks(VALUE), "unknown type 'money'"),
        (utf("v2") + chunks({"type": "array", "elementType": "long"}) + chunks(VALUE), "the schema is not a struct"),
        (utf("v2") + chunks({"type": "struct"}) + chunks(VALUE), "lacks a field"),
        (utf("v1") + utf("{") + utf("{"), "it is not a state schema"),
    ],
)
def test_what_is_no_schema(content: bytes, reason: str) -> None:
    with pytest.raises(StateSchemaError, match=reason) as caught:
        decode_schema(content, "file")
    assert caught.value.path == "file"


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=3))
def test_damage_is_one_error(at: int, patch: bytes) -> None:
    content = bytearray(schema_v3({"count": (KEY, VALUE)}))
    at %= len(content)
    content[at : at + len(patch)] = patch
    families: tuple[FamilySchema, ...] | None = None
    try:
        families = decode_schema(bytes(content), "file")
    except StateSchemaError as error:
        reason = str(error)
        assert reason.startswith("file: ")
    assert families is None or len(families) <= 1


def test_fields_of_one_name_are_told_apart() -> None:
    fields = [{"name": name, "type": "long"} for name in ("sum", "sum", "sum_2", "count", "sum")]
    assert struct_of({"type": "struct", "fields": fields}).names == ("sum", "sum_3", "sum_2", "count", "sum_4")
