"""Arrow types of Avro's records."""

from __future__ import annotations

import pyarrow as pa

from spark_ckpt.flink.streams.types.avro import AvroType, branch_name, branches
from spark_ckpt.flink.types.arrow import MILLIS, STRING, list_type, map_type, named_type
from spark_ckpt.flink.types.record import ArrowType
from spark_ckpt.format.decimals import decimal_of

_MAX_DIGITS = 38
_KINDS = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): MILLIS.type,
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


def avro_type(kind: AvroType) -> ArrowType:
    """Arrow type of the values of a schema."""
    name, precision, scale = kind.logical
    if (logical := _LOGICAL.get((kind.kind, name))) is not None:
        return ArrowType(logical)
    if (
        name == "decimal"
        and kind.kind in ("bytes", "fixed")
        and 0 < precision <= _MAX_DIGITS
        and 0 <= scale <= precision
    ):
        return ArrowType(
            pa.decimal128(precision, scale), lambda raw: decimal_of(int.from_bytes(raw, "big", signed=True), scale)
        )
    if (simple := _KINDS.get(kind.kind)) is not None:
        return ArrowType(simple)
    if kind.kind == "union":
        return _union(branches(kind))
    parts = [avro_type(part) for part in kind.parts]
    if kind.kind == "array":
        return list_type(parts[0])
    if kind.kind == "map":
        return map_type(STRING, parts[0])
    return named_type(*zip(kind.names, parts, strict=True))


def _union(choices: tuple[AvroType, ...]) -> ArrowType:
    """Type of a union: that of its branch or, if it has several beside null, a struct with a field for each."""
    if not choices:
        return ArrowType(pa.null())
    if len(choices) == 1:
        return avro_type(choices[0])
    fields = {branch_name(branch): avro_type(branch) for branch in choices}
    return ArrowType(
        pa.struct([(name, part.type) for name, part in fields.items()]),
        lambda value: {value[0]: fields[value[0]].of(value[1])},
    )
