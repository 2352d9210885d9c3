"""Spark SQL types: names in schema files, layout in an UnsafeRow, and Arrow types.

Sources: `org.apache.spark.sql.types.DataType` for the JSON; `UnsafeRow`, `UnsafeArrayData` and `UnsafeWriter` for the
binary layout. Arrow types follow PySpark's `to_arrow_type` if it defines one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TypeAlias

import pyarrow as pa

_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"string( collate .*)?|(var)?char\(.*\)")
_GEO = re.compile(r"(geometry|geography)(\(.*\))?")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_YEAR_MONTH = re.compile(r"interval (year|month)( to month)?")
_TIME = re.compile(r"time\(\d+\)")


@dataclass(frozen=True)
class Fixed:
    """A type with values stored in the slot itself.

    Args:
        arrow: Arrow type.
        stored: NumPy dtype of the slot's content.
        width: size of an array element in bytes.
    """

    arrow: pa.DataType
    stored: str
    width: int


@dataclass(frozen=True)
class Bytes:
    """Text or bytes; the slot holds offset and size."""

    arrow: pa.DataType
    width: int = 8


@dataclass(frozen=True)
class Decimal:
    """A decimal: stored in the slot up to 18 digits, otherwise as a big-endian integer of at most 16 bytes."""

    arrow: pa.DataType
    width: int = 8

    @property
    def is_long(self) -> bool:
        """True if the value is stored in the slot (`Decimal.MAX_LONG_DIGITS`)."""
        return bool(self.arrow.precision <= 18)


@dataclass(frozen=True)
class Null:
    """The null type."""

    arrow: pa.DataType = pa.null()  # noqa: RUF009  (Arrow types are immutable)
    width: int = 8


@dataclass(frozen=True)
class CalendarInterval:
    """Months, days and microseconds. Arrow's own type counts nanoseconds, which overflow for long intervals."""

    arrow: pa.DataType = pa.struct(  # noqa: RUF009
        [("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())]
    )
    width: int = 8


@dataclass(frozen=True)
class Variant:
    """A variant: value and metadata, as in Parquet's encoding."""

    arrow: pa.DataType = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])  # noqa: RUF009
    width: int = 8


@dataclass(frozen=True)
class Array:
    """An array of elements of one type."""

    element: SparkType
    width: int = 8

    @cached_property
    def arrow(self) -> pa.DataType:
        """Arrow type."""
        return pa.list_(self.element.arrow)


@dataclass(frozen=True)
class Map:
    """A map: an array of keys and an array of values."""

    key: SparkType
    value: SparkType
    width: int = 8

    @cached_property
    def arrow(self) -> pa.DataType:
        """Arrow type."""
        return pa.map_(self.key.arrow, self.value.arrow)


@dataclass(frozen=True)
class Struct:
    """Named fields. All are nullable regardless of the schema, because Spark does not enforce nullability."""

    names: tuple[str, ...]
    types: tuple[SparkType, ...]
    width: int = 8

    @cached_property
    def arrow(self) -> pa.DataType:
        """Arrow type."""
        return pa.struct([pa.field(name, kind.arrow) for name, kind in zip(self.names, self.types, strict=True)])

    @property
    def null_bytes(self) -> int:
        """Size of the null bitmap in bytes (`UnsafeRow.calculateBitSetWidthInBytes`)."""
        return (len(self.types) + 63) // 64 * 8

    @property
    def fixed_bytes(self) -> int:
        """Size of the null bitmap and the slots in bytes; the variable-length part of a row follows."""
        return self.null_bytes + 8 * len(self.types)


SparkType: TypeAlias = Fixed | Bytes | Decimal | Null | CalendarInterval | Variant | Array | Map | Struct

_NAMED: Mapping[str, SparkType] = {
    "void": Null(),
    "null": Null(),
    "boolean": Fixed(pa.bool_(), "u1", 1),
    "byte": Fixed(pa.int8(), "<i1", 1),
    "short": Fixed(pa.int16(), "<i2", 2),
    "integer": Fixed(pa.int32(), "<i4", 4),
    "long": Fixed(pa.int64(), "<i8", 8),
    "float": Fixed(pa.float32(), "<f4", 4),
    "double": Fixed(pa.float64(), "<f8", 8),
    "date": Fixed(pa.date32(), "<i4", 4),
    "timestamp": Fixed(pa.timestamp("us", "UTC"), "<i8", 8),
    "timestamp_ntz": Fixed(pa.timestamp("us"), "<i8", 8),
    "decimal": Decimal(pa.decimal128(10, 0)),
    "binary": Bytes(pa.binary()),
    "interval": CalendarInterval(),
    "variant": Variant(),
}
_PATTERNS: tuple[tuple[re.Pattern[str], SparkType], ...] = (
    (_TEXT, Bytes(pa.string())),
    (_GEO, Bytes(pa.binary())),
    (_DAY_TIME, Fixed(pa.duration("us"), "<i8", 8)),
    (_YEAR_MONTH, Fixed(pa.int32(), "<i4", 4)),
    (_TIME, Fixed(pa.time64("ns"), "<i8", 8)),
)


def struct_of(json: object) -> Struct:
    """Struct type of a Spark schema.

    Args:
        json: parsed JSON of the schema.

    Raises:
        ValueError: the schema is not a struct, or contains an unknown type.
    """
    kind = type_of(json)
    if not isinstance(kind, Struct):
        raise ValueError(f"the schema is not a struct: {json!r}")
    return kind


def type_of(json: object) -> SparkType:
    """Type described by a JSON value (`DataType.parseDataType`).

    Raises:
        ValueError: the type is unknown.
    """
    if isinstance(json, str):
        return _named(json)
    if not isinstance(json, dict):
        raise ValueError(f"unknown type {json!r}")
    try:
        match json["type"]:
            case "struct":
                fields = json["fields"]
                names = unique_names([str(field["name"]) for field in fields])
                return Struct(names, tuple(type_of(field["type"]) for field in fields))
            case "array":
                return Array(type_of(json["elementType"]))
            case "map":
                return Map(type_of(json["keyType"]), type_of(json["valueType"]))
            case "udt":
                return type_of(json["sqlType"])
    except (KeyError, TypeError) as e:
        raise ValueError(f"a type lacks a field: {e!r}") from e
    raise ValueError(f"unknown type {json['type']!r}")


def unique_names(names: list[str]) -> tuple[str, ...]:
    """Unique names: the state of `sum(a), sum(b)` has two fields `sum`; the second becomes `sum_2`."""
    unique: list[str] = []
    for name in names:
        numbered = (f"{name}_{number}" for number in count(2))
        unique.append(name if name not in unique else next(other for other in numbered if other not in names + unique))
    return tuple(unique)


def _named(name: str) -> SparkType:
    if name in _NAMED:
        return _NAMED[name]
    if match := _DECIMAL.fullmatch(name):
        return Decimal(pa.decimal128(int(match[1]), int(match[2])))
    for pattern, kind in _PATTERNS:
        if pattern.fullmatch(name):
            return kind
    raise ValueError(f"unknown type '{name}'")


def map_leaf_types(kind: pa.DataType, of: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Arrow type with all leaf types replaced. Leaves are all types except structs, lists and maps.

    Args:
        kind: the Arrow type.
        of: function that replaces a leaf type, or a struct without fields.
    """
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct([pa.field(field.name, map_leaf_types(field.type, of)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(map_leaf_types(kind.value_type, of))
    if pa.types.is_map(kind):
        return pa.map_(map_leaf_types(kind.key_type, of), map_leaf_types(kind.item_type, of))
    return of(kind)
