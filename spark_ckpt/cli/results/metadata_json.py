"""Metadata, records and errors as JSON, with field names of the model."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import (
    CheckpointMetadata,
    KeyGroupRange,
    KeyGroupRangeOffsets,
    required_release,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

_DEEPEST_PAYLOAD = 50


def describe_required_release(metadata: CheckpointMetadata) -> JsonObject:
    """The oldest release of Flink that can read the metadata, and why."""
    required = required_release(metadata)
    return {"release": str(required.release), "reasons": list(required.reasons)}


def describe_error(error: SparkCkptError) -> JsonObject:
    """The class of an error as `error`, its `message`, and its attributes."""
    attributes = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"error": type(error).__name__, "message": str(error), **attributes}


def decoded_payload(payload: bytes) -> Json:
    """The payload of a master state as a JSON value or as text; None if it is neither."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        # Such as an entry of Spark's logs, which starts with a version line.
        return text
    return value if _can_be_written(value) else text


def _can_be_written(value: Json, depth: int = 0) -> bool:
    """True if a parsed value can be written as JSON: Python also parses `NaN`, `1e999` and very deep nesting."""
    if isinstance(value, float):
        return isfinite(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < _DEEPEST_PAYLOAD and all(_can_be_written(item, depth + 1) for item in items)


def value_json(value: object) -> Json:
    """A value of the model. Bytes are base64, enums their names; objects have their class as `type`.

    Raises:
        TypeError: the value has another type.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return object_json(value)
    if isinstance(value, bytes):
        return base64_text(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {name: value_json(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [value_json(item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"no JSON for a {type(value).__name__}")


def object_json(value: DataclassInstance) -> JsonObject:
    """The class of an object as `type`, and its fields; key-group ranges have no `type`."""
    if isinstance(value, KeyGroupRangeOffsets):
        return {**object_json(value.key_group_range), "offsets": value.offsets.tolist()}
    if isinstance(value, KeyGroupRange):
        return {"start": value.start, "end": value.end}
    return {"type": type(value).__name__} | {f.name: value_json(getattr(value, f.name)) for f in fields(value)}


def base64_text(content: bytes) -> str:
    """Bytes as base64."""
    return base64.b64encode(content).decode("ascii")
