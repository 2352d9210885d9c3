"""Arrow types of values with parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from spark_ckpt.flink.streams.values import Timestamp
from spark_ckpt.flink.types.record import ArrowType

MILLIS = ArrowType(pa.timestamp("ms", tz="UTC"))
STRING = ArrowType(pa.string())
_MAX_MICROSECOND_DIGITS = 6


def fields_type(**types: pa.DataType) -> ArrowType:
    """Type of named tuples with these fields."""
    return ArrowType(pa.struct(list(types.items())), lambda value: value._asdict())


TIMESTAMP = fields_type(millis=pa.int64(), nanos=pa.int32())
INSTANT = fields_type(seconds=pa.int64(), nanos=pa.int32())


def list_type(element: ArrowType) -> ArrowType:
    """Type of lists."""
    return ArrowType(pa.list_(element.type), lambda value: [element.of(item) for item in value])


def map_type(keys: ArrowType, values: ArrowType) -> ArrowType:
    """Type of maps, which are pairs. No key is null."""
    return ArrowType(
        pa.map_(keys.type, values.type), lambda value: [(keys.of(key), values.of(item)) for key, item in value]
    )


def named_type(*parts: tuple[str, ArrowType]) -> ArrowType:
    """Type of tuples, as structs with these fields."""

    def convert(value: Any) -> dict[str, Any]:  # noqa: ANN401  (values of all types)
        return {name: part.of(item) for (name, part), item in zip(parts, value, strict=False)}

    return ArrowType(pa.struct([(name, part.type) for name, part in parts]), convert)


def tuple_type(parts: Sequence[ArrowType]) -> ArrowType:
    """Type of tuples without names: fields `f0`, `f1` and so on."""
    return named_type(*[(f"f{number}", part) for number, part in enumerate(parts)])


def row_type(parts: Sequence[ArrowType]) -> ArrowType:
    """Type of rows, with their kind in front."""
    fields = tuple_type(parts)
    return ArrowType(
        pa.struct([("kind", pa.int8()), *fields.type]),
        lambda value: {"kind": value.kind, **fields.of(value.fields)},
    )


def timestamp_type(precision: int, zone: str | None) -> ArrowType:
    """Type of timestamps of Flink SQL.

    Args:
        precision: digits of the seconds after the point.
        zone: their time zone; None if they have none.
    """
    if precision > _MAX_MICROSECOND_DIGITS:
        # Nanoseconds since 1970 in 64 bits end in 2262.
        return TIMESTAMP
    return ArrowType(pa.timestamp("us", tz=zone), _micros)


def _micros(value: Timestamp) -> int:
    return value.millis * 1000 + value.nanos // 1000


def opaque_type(class_name: str) -> ArrowType:
    """Type of bytes of an unknown class: a struct of both."""
    return ArrowType(
        pa.struct([("class", pa.string()), ("bytes", pa.binary())]), lambda raw: {"class": class_name, "bytes": raw}
    )
