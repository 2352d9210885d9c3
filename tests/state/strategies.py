"""Random Spark types, in the JSON of Spark's schema files, and values of them, in the form that Arrow accepts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

Json = Any

_DAY_NANOS = 24 * 3600 * 10**9


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


floats = st.floats(allow_nan=False)
binaries = st.binary(max_size=20)

SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "void": st.none(),
    "boolean": st.booleans(),
    "byte": integers(8),
    "short": integers(16),
    "integer": integers(32),
    "long": integers(64),
    "float": st.floats(width=32, allow_nan=False),
    "double": floats,
    "date": integers(32),
    "timestamp": integers(64),
    "timestamp_ntz": integers(64),
    "interval day to second": integers(64),
    "interval year to month": integers(32),
    "time(6)": st.integers(0, _DAY_NANOS - 1),
    "string": st.text(max_size=20),
    "string collate UNICODE_CI": st.text(max_size=5),
    "varchar(5)": st.text(max_size=5),
    "binary": binaries,
    "interval": st.fixed_dictionaries({"months": integers(32), "days": integers(32), "microseconds": integers(64)}),
    "variant": st.fixed_dictionaries({"value": binaries, "metadata": binaries}),
}


@st.composite
def decimals(draw: st.DrawFn) -> str:
    precision = draw(st.integers(1, 38))
    return f"decimal({precision},{draw(st.integers(0, precision))})"


def structs(types: st.SearchStrategy[Json], least: int = 0, most: int = 5) -> st.SearchStrategy[Json]:
    def named(kinds: list[Json]) -> Json:
        fields = [{"name": f"f{i}", "type": kind, "nullable": True, "metadata": {}} for i, kind in enumerate(kinds)]
        return {"type": "struct", "fields": fields}

    return st.lists(types, min_size=least, max_size=most).map(named)


def _nested(types: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    keys = types.filter(lambda kind: kind != "void")
    return (
        structs(types)
        | st.builds(lambda element: {"type": "array", "elementType": element, "containsNull": True}, types)
        | st.builds(lambda key, value: {"type": "map", "keyType": key, "valueType": value}, keys, types)
    )


types = st.recursive(st.sampled_from(list(SIMPLE)) | decimals(), _nested, max_leaves=6)
schemas = structs(types) | structs(st.sampled_from(["long", "string", "boolean"]), 60, 70)


def values(kind: Json, *, can_be_null: bool = True) -> st.SearchStrategy[Any]:
    """Random values of a type."""
    of_kind = _values(kind)
    return st.none() | of_kind if can_be_null else of_kind


def rows(schema: Json) -> st.SearchStrategy[tuple[Any, ...]]:
    """Random field values of a row."""
    return st.tuples(*(values(field["type"]) for field in schema["fields"]))


def _values(kind: Json) -> st.SearchStrategy[Any]:
    if isinstance(kind, str) and kind in SIMPLE:
        return SIMPLE[kind]
    if isinstance(kind, str):
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        most = 10**precision - 1
        return st.integers(-most, most).map(lambda unscaled: Decimal(f"{unscaled}e-{scale}"))
    if kind["type"] == "struct":
        return st.fixed_dictionaries({field["name"]: values(field["type"]) for field in kind["fields"]})
    if kind["type"] == "array":
        return st.lists(values(kind["elementType"]), max_size=4)
    pair = st.tuples(values(kind["keyType"], can_be_null=False), values(kind["valueType"]))
    return st.lists(pair, max_size=3)
