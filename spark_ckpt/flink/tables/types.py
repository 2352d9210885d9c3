"""Arrow types of Flink's serializers, and their values for Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from spark_ckpt.flink.streams import Serializer
from spark_ckpt.flink.streams.types import arrays, big_numbers, cep, primitives, text, times
from spark_ckpt.flink.streams.types.accumulators import (
    ExternalSerializer,
    LinkedListSerializer,
    ListViewSerializer,
    MapViewSerializer,
    NullAwareMapSerializer,
    RawValueSerializer,
    SortedMapSerializer,
)
from spark_ckpt.flink.streams.types.avro import AvroSerializer, AvroType, branch_name, branches
from spark_ckpt.flink.streams.types.binary_row import types_of_map
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TimerSerializer,
    TtlSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.logical_types import STRUCTURED, LogicalType
from spark_ckpt.flink.streams.types.pojo import PojoSerializer
from spark_ckpt.flink.streams.types.row_data import (
    ArrayDataSerializer,
    DecimalDataSerializer,
    MapDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)
from spark_ckpt.flink.streams.values import Timestamp
from spark_ckpt.format.decimals import decimal_of

Convert: TypeAlias = Callable[[Any], Any]
"""Conversion of a value that is not null to what Arrow takes."""


class ArrowType(NamedTuple):
    """Arrow type of a serializer.

    Args:
        type: Arrow type.
        convert: conversion of values that are not null; None if Arrow takes them as they are.
    """

    type: pa.DataType
    convert: Convert | None = None

    def of(self, value: Any) -> Any:  # noqa: ANN401  (values of all types)
        """Value for Arrow."""
        return value if value is None or self.convert is None else self.convert(value)


_MILLIS = pa.timestamp("ms", tz="UTC")
_MAX_MICROSECOND_DIGITS = 6


def _fields(**types: pa.DataType) -> ArrowType:
    return ArrowType(pa.struct(list(types.items())), lambda value: value._asdict())


_TIMESTAMP = _fields(millis=pa.int64(), nanos=pa.int32())
_LOCAL_DATE = _fields(year=pa.int32(), month=pa.int8(), day=pa.int8())
_LOCAL_TIME = _fields(hour=pa.int8(), minute=pa.int8(), second=pa.int8(), nanos=pa.int32())

_SIMPLE: dict[str, ArrowType] = {
    serializer.snapshot_class: arrow
    for serializer, arrow in (
        (primitives.BOOLEAN, ArrowType(pa.bool_())),
        (primitives.BYTE, ArrowType(pa.int8())),
        (primitives.SHORT, ArrowType(pa.int16())),
        (primitives.INT, ArrowType(pa.int32())),
        (primitives.LONG, ArrowType(pa.int64())),
        (primitives.FLOAT, ArrowType(pa.float32())),
        (primitives.DOUBLE, ArrowType(pa.float64())),
        (primitives.CHAR, ArrowType(pa.string())),
        (primitives.BYTES, ArrowType(pa.binary())),
        (primitives.VOID_NAMESPACE, ArrowType(pa.null())),
        (primitives.TIME_WINDOW, _fields(start=_MILLIS, end=_MILLIS)),
        (primitives.SQL_TIME_WINDOW, _fields(start=_MILLIS, end=_MILLIS)),
        (primitives.SQL_COUNT_WINDOW, _fields(id=pa.int64())),
        (primitives.GLOBAL_WINDOW, ArrowType(pa.null())),
        (primitives.SQL_NULL, ArrowType(pa.null())),
        (arrays.BOOLEANS, ArrowType(pa.list_(pa.bool_()))),
        (arrays.SHORTS, ArrowType(pa.list_(pa.int16()))),
        (arrays.INTS, ArrowType(pa.list_(pa.int32()))),
        (arrays.LONGS, ArrowType(pa.list_(pa.int64()))),
        (arrays.FLOATS, ArrowType(pa.list_(pa.float32()))),
        (arrays.DOUBLES, ArrowType(pa.list_(pa.float64()))),
        (arrays.CHARS, ArrowType(pa.list_(pa.string()))),
        (arrays.STRINGS, ArrowType(pa.list_(pa.string()))),
        (cep.DEWEY_NUMBER, ArrowType(pa.list_(pa.int32()))),
        (cep.EVENT_ID, _fields(id=pa.int32(), timestamp=_MILLIS)),
        (text.STRING, ArrowType(pa.string())),
        (text.STRING_DATA, ArrowType(pa.string())),
        # They have no limit of digits.
        (big_numbers.BIG_INTEGER, ArrowType(pa.string(), str)),
        (big_numbers.BIG_DECIMAL, ArrowType(pa.string(), str)),
        (times.DATE, ArrowType(_MILLIS)),
        (times.SQL_DATE, ArrowType(_MILLIS)),
        (times.SQL_TIME, ArrowType(_MILLIS)),
        (times.SQL_TIMESTAMP, _TIMESTAMP),
        (times.INSTANT, _fields(seconds=pa.int64(), nanos=pa.int32())),
        (times.LOCAL_DATE, _LOCAL_DATE),
        (times.LOCAL_TIME, _LOCAL_TIME),
        (
            times.LOCAL_DATE_TIME,
            ArrowType(
                pa.struct([("date", _LOCAL_DATE.type), ("time", _LOCAL_TIME.type)]),
                lambda value: {"date": value.date._asdict(), "time": value.time._asdict()},
            ),
        ),
    )
}
_SQL = {
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME_WITHOUT_TIME_ZONE": pa.time32("ms"),
    "INTERVAL_YEAR_MONTH": pa.int32(),
    "INTERVAL_DAY_TIME": pa.int64(),
}
_AVRO = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_AVRO_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): _MILLIS,
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_MAX_DIGITS = 38
_TRANSPARENT = (NullableSerializer, ExternalSerializer, RawValueSerializer, MapViewSerializer, ListViewSerializer)
"""Serializers whose values are those of their part."""


def arrow_type(serializer: Serializer) -> ArrowType:
    """Arrow type of a serializer's values. Values of a serializer with an unknown class are bytes."""
    if serializer.is_opaque:
        return opaque_type(str(serializer))
    if (simple := _SIMPLE.get(serializer.snapshot_class)) is not None:
        return simple
    parts = [arrow_type(part) for part in serializer.nested]
    if isinstance(serializer, _TRANSPARENT):
        return parts[0]
    if isinstance(serializer, (ListSerializer, LinkedListSerializer)):
        return list_type(parts[0])
    if isinstance(serializer, (MapSerializer, SortedMapSerializer)):
        return _map(*parts)
    if isinstance(serializer, NullAwareMapSerializer):
        # A key may be null, unlike those of maps in Arrow.
        return list_type(_named(("key", parts[0]), ("value", parts[1])))
    if isinstance(serializer, cep.NodeIdSerializer):
        return _named(("event_id", parts[0]), ("page", ArrowType(pa.string())))
    if isinstance(serializer, cep.SharedBufferEdgeSerializer):
        return _named(("target", parts[0]), ("version", parts[1]))
    if isinstance(serializer, cep.SharedBufferNodeSerializer):
        return list_type(_named(("references", ArrowType(pa.int32())), ("value", parts[0])))
    if isinstance(serializer, cep.LockableSerializer):
        return _named(("references", ArrowType(pa.int32())), ("value", parts[0]))
    if isinstance(serializer, cep.NFAStateSerializer):
        matches = list_type(_match(*parts))
        return _named(("partial_matches", matches), ("completed_matches", matches))
    if isinstance(serializer, TupleSerializer):
        return _struct(parts)
    if isinstance(serializer, RowSerializer):
        return _row(parts)
    if isinstance(serializer, TimerSerializer):
        return _named(("timestamp", ArrowType(_MILLIS)), ("key", parts[0]), ("namespace", parts[1]))
    if isinstance(serializer, TtlSerializer):
        return _named(("last_access", ArrowType(_MILLIS)), ("value", parts[1]))
    if isinstance(serializer, EnumSerializer):
        return ArrowType(pa.string())
    if isinstance(serializer, RowDataSerializer):
        return _row([_sql_type(logical_type) for logical_type in serializer.types])
    if isinstance(serializer, ArrayDataSerializer):
        return list_type(_sql_type(serializer.element))
    if isinstance(serializer, MapDataSerializer):
        return _map(_sql_type(serializer.key), _sql_type(serializer.value))
    if isinstance(serializer, PojoSerializer):
        return _named(*zip([field.name for field in serializer.fields], parts, strict=True))
    if isinstance(serializer, AvroSerializer) and serializer.type is not None:
        return _avro_type(serializer.type)
    if isinstance(serializer, DecimalDataSerializer):
        return ArrowType(pa.decimal128(serializer.precision, serializer.scale))
    if isinstance(serializer, TimestampDataSerializer):
        return _timestamp(serializer.precision, None)
    return ArrowType(pa.binary())


def _match(version: ArrowType, node: ArrowType, event: ArrowType) -> ArrowType:
    return _named(
        ("state", ArrowType(pa.string())),
        ("previous", node),
        ("version", version),
        ("start_timestamp", ArrowType(_MILLIS)),
        ("previous_timestamp", ArrowType(_MILLIS)),
        ("start_event", event),
    )


def list_type(element: ArrowType) -> ArrowType:
    """Arrow type of lists."""
    return ArrowType(pa.list_(element.type), lambda value: [element.of(item) for item in value])


def _map(keys: ArrowType, values: ArrowType) -> ArrowType:
    return ArrowType(
        pa.map_(keys.type, values.type), lambda value: [(keys.of(key), values.of(item)) for key, item in value]
    )


def _avro_type(kind: AvroType) -> ArrowType:
    name, precision, scale = kind.logical
    if (logical := _AVRO_LOGICAL.get((kind.kind, name))) is not None:
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
    if (simple := _AVRO.get(kind.kind)) is not None:
        return ArrowType(simple)
    if kind.kind == "fixed":
        return ArrowType(pa.binary())
    if kind.kind == "enum":
        return ArrowType(pa.string())
    if kind.kind == "union":
        return _union(branches(kind))
    parts = [_avro_type(part) for part in kind.parts]
    if kind.kind == "array":
        return list_type(parts[0])
    if kind.kind == "map":
        return _map(ArrowType(pa.string()), parts[0])
    return _named(*zip(kind.names, parts, strict=True))


def _union(choices: tuple[AvroType, ...]) -> ArrowType:
    """Type of a union: that of its branch or, if it has several beside null, a struct with a field for each."""
    if not choices:
        return ArrowType(pa.null())
    if len(choices) == 1:
        return _avro_type(choices[0])
    fields = {branch_name(branch): _avro_type(branch) for branch in choices}
    return ArrowType(
        pa.struct([(name, part.type) for name, part in fields.items()]),
        lambda value: {value[0]: fields[value[0]].of(value[1])},
    )


def opaque_type(class_name: str) -> ArrowType:
    """Arrow type of bytes of an unknown class: a struct of both."""
    return ArrowType(
        pa.struct([("class", pa.string()), ("bytes", pa.binary())]), lambda raw: {"class": class_name, "bytes": raw}
    )


def _sql_type(logical_type: LogicalType) -> ArrowType:
    if (simple := _SQL.get(logical_type.root)) is not None:
        return ArrowType(simple)
    if logical_type.root == "DECIMAL":
        return ArrowType(pa.decimal128(*logical_type.parameters))
    if logical_type.root == "ARRAY":
        return list_type(_sql_type(logical_type.children[0]))
    if logical_type.root in ("MAP", "MULTISET"):
        keys, values = types_of_map(logical_type)
        return _map(_sql_type(keys), _sql_type(values))
    if logical_type.root == "RAW":
        if logical_type.raw is None or logical_type.raw.is_opaque:
            return opaque_type(logical_type.class_name)
        return arrow_type(logical_type.raw)
    if logical_type.root in ("ROW", STRUCTURED):
        fields = _named(*zip(logical_type.names, map(_sql_type, logical_type.children), strict=True))
        return ArrowType(fields.type, lambda value: fields.of(value.fields))
    zone = "UTC" if logical_type.root == "TIMESTAMP_WITH_LOCAL_TIME_ZONE" else None
    return _timestamp(logical_type.parameters[0], zone)


def _timestamp(precision: int, zone: str | None) -> ArrowType:
    if precision > _MAX_MICROSECOND_DIGITS:
        # Nanoseconds since 1970 in 64 bits end in 2262.
        return _TIMESTAMP
    return ArrowType(pa.timestamp("us", tz=zone), _micros)


def _micros(value: Timestamp) -> int:
    return value.millis * 1000 + value.nanos // 1000


def _struct(parts: list[ArrowType]) -> ArrowType:
    names = [f"f{number}" for number in range(len(parts))]
    return _named(*zip(names, parts, strict=True))


def _row(parts: list[ArrowType]) -> ArrowType:
    fields = _struct(parts)
    return ArrowType(
        pa.struct([("kind", pa.int8()), *fields.type]),
        lambda value: {"kind": value.kind, **fields.of(value.fields)},
    )


def _named(*parts: tuple[str, ArrowType]) -> ArrowType:
    def convert(value: Any) -> dict[str, Any]:  # noqa: ANN401  (values of all types)
        return {name: part.of(item) for (name, part), item in zip(parts, value, strict=False)}

    return ArrowType(pa.struct([(name, part.type) for name, part in parts]), convert)
