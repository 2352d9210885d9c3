"""State schemas that Spark can and cannot read."""

from __future__ import annotations

import random
from typing import Any

import pytest

from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.spark_files.schema_check import check_schema
from tests.support.state_location import Schema, schema, schema_v1, schema_v2, schema_v3

NESTED: Any = {
    "type": "map",
    "keyType": "string",
    "valueType": {"type": "array", "elementType": schema(x="decimal(9,2)"), "containsNull": True},
    "valueContainsNull": False,
}
KEY, VALUE = schema(user="string"), schema(n="long", nested=NESTED)
FILES = [schema_v1(KEY, VALUE), schema_v2(KEY, VALUE), schema_v3({"default": (KEY, VALUE), "count": (KEY, KEY)})]


@pytest.mark.parametrize("content", FILES)
def test_what_spark_writes(content: bytes) -> None:
    check_schema(content, "schema")


@pytest.mark.parametrize("where", ["Prefix", "Postfix"])
def test_keys_with_a_time(where: str) -> None:
    """Joins of state format 4 (Spark 4.2)."""
    check_schema(schema_v3({"default": (KEY, VALUE)}, f"TimestampAs{where}KeyStateEncoderSpec"), "schema")


def without(kind: Schema, key: str) -> Schema:
    return {**kind, "fields": [{name: part for name, part in kind["fields"][0].items() if name != key}]}


@pytest.mark.parametrize("key", ["metadata", "nullable"])
def test_what_spark_can_do_without(key: str) -> None:
    value = without(schema(n="long"), "metadata")
    check_schema(schema_v2(KEY, without(value, key)), "schema")


@pytest.mark.parametrize(
    "value",
    [
        schema(n="lonf"),
        without(schema(n="long"), "name"),
        without(schema(n="long"), "type"),
        {**schema(n="long"), "other": 1},
        schema(n={"type": "array", "elementType": "long", "containsNulk": True}),
        schema(n={"type": "array", "elementType": "long", "containsNull": 1}),
        schema(n={"type": "list"}),
        "long",
    ],
)
def test_types_that_spark_refuses(value: Any) -> None:
    with pytest.raises(StateSchemaError, match="schema"):
        check_schema(schema_v2(KEY, value), "schema")


@pytest.mark.parametrize("content", FILES)
def test_a_file_that_is_cut_anywhere(content: bytes) -> None:
    for size in range(len(content)):
        with pytest.raises(StateSchemaError):
            check_schema(content[:size], "schema")


@pytest.mark.parametrize("content", FILES)
def test_a_changed_byte_is_an_error_or_a_schema(content: bytes, rng: random.Random) -> None:
    refused = 0
    for at in rng.sample(range(len(content)), 150):
        changed = bytearray(content)
        changed[at] ^= 1 << rng.randrange(8)
        try:
            check_schema(bytes(changed), "schema")
        except StateSchemaError:
            refused += 1
    assert refused > 75


@pytest.mark.parametrize(
    ("old", "new"), [(b"NoPrefixKey", b"NoPrefiyKey"), (b"keyStateEncoderType", b"keyStateEncoderTypf")]
)
def test_encoders_that_spark_does_not_know(old: bytes, new: bytes) -> None:
    with pytest.raises(StateSchemaError, match="Spark cannot read it"):
        check_schema(FILES[2].replace(old, new), "schema")
