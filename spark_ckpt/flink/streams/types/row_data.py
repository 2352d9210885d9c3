"""Serializers of Flink SQL's values: rows, decimals and timestamps."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from spark_ckpt.flink.streams import assignment
from spark_ckpt.flink.streams.types import binary_row
from spark_ckpt.flink.streams.types.accumulators import RawValueSerializer
from spark_ckpt.flink.streams.types.base import TABLE, ConfiguredSerializer, ReadNested, Serializer, write_nested
from spark_ckpt.flink.streams.types.java_structure import read_java
from spark_ckpt.flink.streams.types.logical_types import (
    NUMBER_CODES,
    STRUCTURED,
    LogicalType,
    read_logical_type,
    with_raw,
    write_logical_type,
)
from spark_ckpt.flink.streams.types.opaque import OpaqueSerializer
from spark_ckpt.flink.streams.types.primitives import BOOLEAN, BYTE, BYTES, DOUBLE, FLOAT, INT, LONG, SHORT
from spark_ckpt.flink.streams.types.text import STRING_DATA
from spark_ckpt.flink.streams.values import RowData, Timestamp, Value
from spark_ckpt.format.decimals import decimal_of, twos_complement
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

if TYPE_CHECKING:
    from typing_extensions import Self

_NANOS = 1_000_000
_MIN_LOGICAL_TYPE = 64


@dataclass(frozen=True, slots=True)
class DecimalDataSerializer(ConfiguredSerializer):
    """`DecimalDataSerializer`: i64 unscaled value up to 18 digits, else bytes of it. A value is a `Decimal`.

    Args:
        precision: number of digits.
        scale: digits after the point.
    """

    precision: int
    scale: int

    class_name: ClassVar[str] = f"{TABLE}.DecimalDataSerializer$DecimalSerializerSnapshot"

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        at = data.position
        precision, scale = data.i32("precision"), data.i32("scale")
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            data.fail("precision", f"DECIMAL({precision}, {scale}) is not a type", at)
        return cls(precision, scale)

    def write_content(self, out: DataOutput) -> None:
        out.i32(self.precision, "precision")
        out.i32(self.scale, "scale")

    def read(self, data: DataInput, field: str) -> Value:
        if binary_row.is_compact_decimal(self.precision):
            return decimal_of(data.i64(field), self.scale)
        at = data.position
        if not (content := data.byte_array(field)):
            data.fail(field, "a DECIMAL without bytes", at)
        return decimal_of(int.from_bytes(content, "big", signed=True), self.scale)

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        if (unscaled := binary_row.unscaled_with(value, self.precision, self.scale)) is None:
            raise out.error(field, f"{value!r} is no {self}")
        if binary_row.is_compact_decimal(self.precision):
            out.i64(unscaled, field)
        else:
            out.byte_array(twos_complement(unscaled), field)

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class TimestampDataSerializer(ConfiguredSerializer):
    """`TimestampDataSerializer`: i64 milliseconds, then for more than 3 digits i32 nanoseconds of the millisecond.

    Args:
        precision: digits of the seconds after the point. A value is a `Timestamp`.
    """

    precision: int

    class_name: ClassVar[str] = f"{TABLE}.TimestampDataSerializer$TimestampDataSerializerSnapshot"
    snapshot_version: ClassVar[int] = 1

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        at = data.position
        if not 0 <= (precision := data.i32("precision")) <= 9:
            data.fail("precision", f"TIMESTAMP({precision}) is not a type", at)
        return cls(precision)

    def write_content(self, out: DataOutput) -> None:
        out.i32(self.precision, "precision")

    @property
    def has_fixed_length(self) -> bool:
        return True

    def read(self, data: DataInput, field: str) -> Value:
        millis = data.i64(field)
        if binary_row.is_compact_timestamp(self.precision):
            return Timestamp(millis)
        at = data.position
        if not 0 <= (nanos := data.i32(field)) < _NANOS:
            data.fail(field, f"{nanos} nanoseconds of a millisecond", at)
        return Timestamp(millis, nanos)

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        compact = binary_row.is_compact_timestamp(self.precision)
        if not isinstance(value, Timestamp) or not 0 <= value.nanos < (1 if compact else _NANOS):
            raise out.error(field, f"{value!r} is no {self}")
        out.i64(value.millis, field)
        if not compact:
            out.i32(value.nanos, field)

    def __str__(self) -> str:
        return f"TIMESTAMP({self.precision})"


@dataclass(frozen=True, slots=True)
class RowDataSerializer(ConfiguredSerializer):
    """`RowDataSerializer`: i32 length, then the row in its binary form. A value is a `RowData`.

    Args:
        types: types of the fields.
        content: content of the snapshot as read, if it has nested types, which only Flink writes.
    """

    types: tuple[LogicalType, ...]
    content: bytes = field(default=b"", compare=False, repr=False)

    class_name: ClassVar[str] = f"{TABLE}.RowDataSerializer$RowDataSerializerSnapshot"

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        start = data.position
        types = tuple([read_logical_type(data) for _ in data.each("types", _MIN_LOGICAL_TYPE)])
        at = data.position
        nested = read_nested(data)
        if len(nested) == len(types):
            types = tuple(map(with_raw, types, nested))
        if nested != tuple(map(serializer_of, types)):
            data.fail("nested", "other nested serializers than those of the types", at)
        is_plain = all(not logical_type.children and logical_type.root != "RAW" for logical_type in types)
        return cls(types, b"" if is_plain else data.since(start))

    def write_content(self, out: DataOutput) -> None:
        if self.content:
            out.raw(self.content)
            return
        out.i32(len(self.types), "types")
        for logical_type in self.types:
            write_logical_type(logical_type, out)
        write_nested(self.nested, out)

    @property
    def nested(self) -> tuple[Serializer, ...]:
        return tuple(map(serializer_of, self.types))

    def read(self, data: DataInput, field: str) -> Value:
        return _read_binary(data, field, lambda row: RowData(*binary_row.decode(self.types, row), row))

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        if not isinstance(value, RowData):
            raise out.error(field, f"{value!r} is no RowData")
        out.byte_array(value.binary or binary_row.encode(self.types, value.kind, value.fields, out, field), field)

    def hash_code(self, value: Any) -> int | None:
        row = value.binary or binary_row.encode(self.types, value.kind, value.fields, DataOutput(), "key")
        # A row is a whole number of words, but damaged bytes may not be.
        return None if len(row) % 4 else assignment.hash_of_words(row)

    def __str__(self) -> str:
        return f"RowData<{', '.join(map(str, self.types))}>"


@dataclass(frozen=True, slots=True)
class ArrayDataSerializer(ConfiguredSerializer):
    """`ArrayDataSerializer`: i32 length, then the array in its binary form. A value is a tuple.

    Args:
        element: type of the elements.
        content: content of the snapshot as read: the type and its serializer as Java objects.
    """

    element: LogicalType
    content: bytes = field(default=b"", compare=False, repr=False)

    class_name: ClassVar[str] = f"{TABLE}.ArrayDataSerializer$ArrayDataSerializerSnapshot"

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        start = data.position
        element = read_logical_type(data)
        read_java(data)
        return cls(element, data.since(start))

    def write_content(self, out: DataOutput) -> None:
        _write_as_read(self, self.content, out)

    def read(self, data: DataInput, field: str) -> Value:
        return _read_binary(data, field, lambda content: binary_row.decode_array(self.element, content))

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapDataSerializer(ConfiguredSerializer):
    """`MapDataSerializer`: i32 length, then the map in its binary form. A value is a tuple of pairs.

    Args:
        key: type of the keys.
        value: type of the values.
        content: content of the snapshot as read: the types and their serializers as Java objects.
    """

    key: LogicalType
    value: LogicalType
    content: bytes = field(default=b"", compare=False, repr=False)

    class_name: ClassVar[str] = f"{TABLE}.MapDataSerializer$MapDataSerializerSnapshot"

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        start = data.position
        key, value = read_logical_type(data), read_logical_type(data)
        read_java(data)
        read_java(data)
        return cls(key, value, data.since(start))

    def write_content(self, out: DataOutput) -> None:
        _write_as_read(self, self.content, out)

    def read(self, data: DataInput, field: str) -> Value:
        return _read_binary(data, field, lambda content: binary_row.decode_map(self.key, self.value, content))

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


def _write_as_read(serializer: Serializer, content: bytes, out: DataOutput) -> None:
    if not content:
        raise out.error("content", f"a snapshot of {serializer} can be read, but not written")
    out.raw(content)


def _read_binary(data: DataInput, field: str, read: Callable[[bytes], Value]) -> Value:
    content = data.byte_array(field)
    try:
        return read(content)
    except binary_row.MalformedRowError as malformed:
        data.fail(field, malformed.reason, data.position - len(content) + malformed.position)
    except struct.error:
        data.fail(field, "a value ends behind its array", data.position - len(content))


@dataclass(frozen=True, slots=True)
class BinaryRowDataSerializer(ConfiguredSerializer):
    """`BinaryRowDataSerializer`: as `RowDataSerializer`, but the snapshot has no types. A value is bytes.

    Args:
        fields: number of fields.
    """

    fields: int

    class_name: ClassVar[str] = f"{TABLE}.BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot"

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        return cls(data.i32("fields"))

    def write_content(self, out: DataOutput) -> None:
        out.i32(self.fields, "fields")

    def read(self, data: DataInput, field: str) -> Value:
        return data.byte_array(field)

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        BYTES.write(value, out, field)

    def hash_code(self, value: Any) -> int | None:
        return None if len(value) % 4 else assignment.hash_of_words(value)

    def __str__(self) -> str:
        return f"BinaryRowData<{self.fields} fields>"


_OF_NUMBERS = {"?": BOOLEAN, "b": BYTE, "h": SHORT, "i": INT, "q": LONG, "f": FLOAT, "d": DOUBLE}
_BY_ROOT: dict[str, Serializer] = {
    "CHAR": STRING_DATA,
    "VARCHAR": STRING_DATA,
    "BINARY": BYTES,
    "VARBINARY": BYTES,
    **{root: _OF_NUMBERS[code] for root, code in NUMBER_CODES.items()},
}


def serializer_of(logical_type: LogicalType) -> Serializer:
    """Serializer of the values of a type (`InternalSerializers`)."""
    if (simple := _BY_ROOT.get(logical_type.root)) is not None:
        return simple
    if logical_type.root == "DECIMAL":
        return DecimalDataSerializer(*logical_type.parameters)
    if logical_type.root == "ARRAY":
        return ArrayDataSerializer(logical_type.children[0])
    if logical_type.root in ("MAP", "MULTISET"):
        return MapDataSerializer(*binary_row.types_of_map(logical_type))
    if logical_type.root in ("ROW", STRUCTURED):
        return RowDataSerializer(logical_type.children)
    if logical_type.root == "RAW":
        return RawValueSerializer((logical_type.raw or OpaqueSerializer(logical_type.class_name, b""),))
    return TimestampDataSerializer(*logical_type.parameters)


SERIALIZERS = (
    DecimalDataSerializer,
    TimestampDataSerializer,
    RowDataSerializer,
    ArrayDataSerializer,
    MapDataSerializer,
    BinaryRowDataSerializer,
)
