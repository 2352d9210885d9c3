"""Check of a state schema file by the rules with which a start of the query reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.spark_files.schemas import chunks, decode_schema

_FIELD = ({"name", "type"}, {"name", "nullable", "type"}, {"metadata", "name", "nullable", "type"})
_TYPES: Mapping[str, tuple[set[str], ...]] = {
    "struct": ({"fields", "type"},),
    "array": ({"containsNull", "elementType", "type"},),
    "map": ({"keyType", "type", "valueContainsNull", "valueType"},),
    "udt": ({"class", "pyClass", "sqlType", "type"}, {"pyClass", "serializedClass", "sqlType", "type"}),
}
"""Keys of the types in JSON: Spark accepts no others (`DataType.parseDataType`)."""

_BOOLEANS = ("nullable", "containsNull", "valueContainsNull")
_ENCODERS: Mapping[str, tuple[str, type] | None] = {
    "NoPrefixKeyStateEncoderSpec": None,
    "RangeKeyScanStateEncoderSpec": ("orderingOrdinals", list),
    "PrefixKeyScanStateEncoderSpec": ("numColsPrefixKey", int),
    "TimestampAsPrefixKeyStateEncoderSpec": None,
    "TimestampAsPostfixKeyStateEncoderSpec": None,
}
"""Encoders of keys by name, with the field that each needs (`KeyStateEncoderSpec.fromJson`)."""


def check_schema(content: bytes, path: str) -> None:
    """Checks that Spark can read a schema file.

    Args:
        content: content of the file.
        path: path of the file, for errors.

    Raises:
        StateSchemaError: it cannot.
    """
    decode_schema(content, path)
    source = DataInput(content, path)
    try:
        version = source.utf("version")
        if version == "v1":
            for part in ("key", "value"):
                _check_type(json.loads(source.utf(part)))
        elif version == "v2":
            for _ in ("key", "value"):
                _check_type(json.loads(chunks(source)))
        else:
            for _ in source.each("families", 20):
                _check_family(source)
    except (SparkCkptError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise StateSchemaError(path, f"Spark cannot read it: {getattr(e, 'reason', e)}") from e


def _check_family(source: DataInput) -> None:
    source.utf("name")
    for part in ("key", "value"):
        source.u16(f"{part} schema id")
        _check_type(json.loads(chunks(source)))
    encoder = json.loads(chunks(source))
    needed = _ENCODERS[encoder["keyStateEncoderType"]]
    if needed is not None and not isinstance(encoder[needed[0]], needed[1]):
        raise ValueError(f"malformed encoder {encoder}")
    chunks(source)  # the type of the user's key: Spark ignores what it cannot read


def _check_type(kind: object) -> None:
    if isinstance(kind, str):
        return  # `decode_schema` knows its name
    if not isinstance(kind, dict) or not any(kind.keys() == keys for keys in _TYPES.get(str(kind.get("type")), ())):
        raise ValueError(f"unknown type {json.dumps(kind)[:80]}")
    _check_booleans(kind)
    for key in ("elementType", "keyType", "valueType", "sqlType"):
        if key in kind:
            _check_type(kind[key])
    for field in kind.get("fields", ()):
        if not any(field.keys() == keys for keys in _FIELD) or not isinstance(field["name"], str):
            raise ValueError(f"malformed field {json.dumps(field)[:80]}")
        _check_booleans(field)
        _check_type(field["type"])


def _check_booleans(part: Mapping[str, object]) -> None:
    for key in _BOOLEANS:
        if not isinstance(part.get(key, True), bool):
            raise ValueError(f"{key} is neither true nor false")
