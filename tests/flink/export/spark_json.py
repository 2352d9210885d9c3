"""Types of Spark in the JSON of its schemas."""

from __future__ import annotations


def struct(**types: object) -> dict[str, object]:
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in types.items()]}


def array_of(element: object) -> dict[str, object]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: object, value: object) -> dict[str, object]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
