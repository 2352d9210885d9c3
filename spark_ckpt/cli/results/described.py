"""Objects of the JSON output, made from the schema that describes them (`schema/format-1.json`).

The schema is their only description: names and types of fields are not repeated here, and an object has no others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

from spark_ckpt.cli.results.metadata_json import Json, JsonObject
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.figures import iso_time

_MISSING = object()


def described(name: str, /, *sources: object, **values: object) -> JsonObject:
    """Object of a definition of the schema.

    A field has the value that is given by its name, or else the attribute of that name of the first source with one.
    The attribute may begin with `is_`; that of `bytes` may be `size`. A field that may be missing takes no attribute.
    Objects within are made the same way, and take the items of a plain tuple in the order of their fields.

    Args:
        name: the definition.
        sources: objects with attributes.
        values: fields that no attribute has.

    Raises:
        AttributeError: a field has no value.
    """
    definition = _definitions()[name]
    fields = {}
    for field, kind in definition["properties"].items():
        if field in values:
            fields[field] = _json(kind, values[field])
        elif field in definition["required"] and field != "format":
            fields[field] = _json(kind, _attribute(name, field, sources))
    return fields


def describe_record(record: CheckpointRecord, **values: object) -> JsonObject:
    """The record of a completed checkpoint, with its time also as text."""
    return described("record", record, timestamp=iso_time(record.timestamp_ms), **values)


@cache
def _definitions() -> Mapping[str, Mapping[str, Any]]:
    text = (files("spark_ckpt.cli") / "schema" / "format-1.json").read_text(encoding="utf-8")
    definitions: Mapping[str, Mapping[str, Any]] = json.loads(text)["$defs"]
    return definitions


def _attribute(name: str, field: str, sources: Iterable[object]) -> object:
    names = (field, f"is_{field}", *(("size",) if field == "bytes" else ()))
    for source in sources:
        for attribute in names:
            if (value := getattr(source, attribute, _MISSING)) is not _MISSING:
                return value
    raise AttributeError(f"no value for the field {field} of {name}")


def _json(kind: Mapping[str, Any], value: Any) -> Json:  # noqa: ANN401  (a value of any type)
    kinds = [each for each in kind.get("oneOf", (kind,)) if each.get("type") != "null"]
    if isinstance(value, Enum):
        return str(value.value)
    (kind,) = kinds if len(kinds) == 1 else ({},)
    if value is None or isinstance(value, (bool, int, float, str, dict)) or kind.keys() <= {"description"}:
        return value  # type: ignore[no-any-return]
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return described(name, **dict(zip(_definitions()[name]["properties"], value, strict=True)))
        return described(name, value)
    if "items" in kind:
        return [_json(kind["items"], item) for item in value]
    if isinstance(value, Mapping):
        return {key: _json(kind.get("additionalProperties", {}), item) for key, item in value.items()}
    return str(value)
