"""JSON schema of the package's output, and coverage of that schema by examples."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA: dict[str, Any] = json.loads((files("spark_ckpt.cli") / "schema" / "format-1.json").read_text())
DEFINITIONS: dict[str, Any] = SCHEMA["$defs"]
RESULTS = (
    "list",
    "inspect",
    "convert",
    "relocate",
    "gc",
    "history",
    "state",
    "flink_state",
    "read",
    "flink_read",
    "export",
    "flink_export",
    "diff",
    "flink_diff",
    "verify",
    "flink_verify",
    "doctor",
    "rollback",
    "savepoint",
    "tag",
    "untag",
    "mirror",
    "failover",
    "restore",
    "rescale",
    "rescale_running",
    "offsets",
    "moved_offsets",
    "evolve",
    "edit",
    "erase",
    "history_of",
    "absence",
    "probe",
    "import",
    "import_undo",
    "import_flink",
    "state_export",
    "savepoint_export",
)
ERRORS = [name for name, definition in DEFINITIONS.items() if "allOf" in definition]


def closed_schema() -> dict[str, Any]:
    """Schema that refuses undescribed fields, for the output of this release."""
    schema = copy.deepcopy(SCHEMA)
    for name, definition in schema["$defs"].items():
        if "properties" in definition and name != "error":
            definition["unevaluatedProperties"] = False
    return schema


CLOSED = closed_schema()


def validator(name: str) -> Draft202012Validator:
    """Validator of a single definition."""
    return Draft202012Validator({**CLOSED, "$ref": f"#/$defs/{name}"})


def alternatives(schema: dict[str, Any], where: str) -> Iterator[str]:
    """Optional parts of a schema: kinds of a union, values of an enumeration, elements, fields."""
    yield from (f"{where}/oneOf/{index}" for index, _ in enumerate(schema.get("oneOf", ())))
    yield from (f"{where}={value}" for value in schema.get("enum", ()))
    if isinstance(schema.get("type"), list):
        yield from (f"{where}:{kind}" for kind in schema["type"])
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield f"{where}/{inner}"
            yield from alternatives(schema[inner], f"{where}/{inner}")
    for field, kind in schema.get("properties", {}).items():
        yield f"{where}.{field}"
        yield from alternatives(kind, f"{where}.{field}")


def used(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    """Alternatives used by a value that is known to be valid.

    Args:
        value: the value.
        schema: its schema.
        where: position of that schema in the whole schema.
    """
    if "$ref" in schema:
        yield from used(value, DEFINITIONS[schema["$ref"].rpartition("/")[2]], schema["$ref"])
    for index, kind in enumerate(schema.get("oneOf", ())):
        if Draft202012Validator({**CLOSED, **kind}).is_valid(value):
            yield f"{where}/oneOf/{index}"
            yield from used(value, kind, f"{where}/oneOf/{index}")
    if "enum" in schema:
        yield f"{where}={value}"
    if isinstance(schema.get("type"), list):
        yield f"{where}:{'null' if value is None else next(kind for kind in schema['type'] if kind != 'null')}"
    if isinstance(value, list) and "items" in schema:
        for item in value:
            yield f"{where}/items"
            yield from used(item, schema["items"], f"{where}/items")
    if isinstance(value, dict):
        for field, item in value.items():
            known = field in schema.get("properties", {})
            inner, at = (schema["properties"][field], f"{where}.{field}") if known else ({}, where)
            if not known and "additionalProperties" in schema:
                inner, at = schema["additionalProperties"], f"{where}/additionalProperties"
            yield at
            yield from used(item, inner, at)
