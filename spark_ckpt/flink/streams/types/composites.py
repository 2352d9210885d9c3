"""Serializers of values with parts: collections, tuples, rows, timers, nullable values and values with a time to live.

List        i32 n, elements
Map         i32 n, then n times key, bool is null, value unless null
Timer       i64 timestamp with its sign bit flipped, key, namespace
Tuple       fields
Row         a bit for each field, the highest first: two of the row kind unless the snapshot says no, then nulls;
            fields that are not null
Nullable    bool is null, then the value, or padding if the snapshot says so
TTL         i64 milliseconds of the last access, value
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spark_ckpt.flink.streams.types.base import BASE, CompositeSerializer, Serializer
from spark_ckpt.flink.streams.values import Row, Timer, TtlValue, Value, read_timestamp
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_U32 = 0xFFFFFFFF
_FLIPPED = 1 << 63
_TUPLE = "org.apache.flink.api.java.tuple.Tuple"
_KIND_BITS = 2
_ROW_KINDS = 4


def read_map_value(data: DataInput, serializer: Serializer, field: str) -> Value:
    """Value of a map: bool is null, then the value unless null (`MapSerializer`, `RocksDBMapState`)."""
    return None if data.boolean(field) else serializer.read(data, field)


def read_items(data: DataInput, serializer: Serializer, count: int, field: str) -> tuple[Value, ...]:
    """Values one behind the other.

    Raises:
        StateStreamFormatError: malformed value, or too many values without bytes.
    """
    items: list[Value] = []
    for _ in range(count):
        at = data.position
        items.append(serializer.read(data, field))
        if data.position == at:
            data.empty_item(field)
    return tuple(items)


def _sequence(out: DataOutput, value: Any, length: int | None, field: str) -> Sequence[Any]:
    if not isinstance(value, (tuple, list)) or length not in (None, len(value)):
        raise out.error(field, f"{value!r} is no sequence" + ("" if length is None else f" of {length} values"))
    return value


@dataclass(frozen=True, slots=True)
class ListSerializer(CompositeSerializer):
    """`ListSerializer`. A value is a tuple."""

    class_name: ClassVar[str] = f"{BASE}.ListSerializerSnapshot"
    name: ClassVar[str] = "List"
    number_of_parts: ClassVar[int | None] = 1

    @property
    def has_fixed_length(self) -> bool:
        return False

    def read(self, data: DataInput, field: str) -> Value:
        (element,) = self.parts
        return read_items(data, element, data.count(field, 1), field)

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        (element,) = self.parts
        out.i32(len(_sequence(out, value, None, field)), field)
        for item in value:
            element.write(item, out, field)


@dataclass(frozen=True, slots=True)
class MapSerializer(CompositeSerializer):
    """`MapSerializer`. A value is a tuple of pairs."""

    class_name: ClassVar[str] = f"{BASE}.MapSerializerSnapshot"
    name: ClassVar[str] = "Map"
    number_of_parts: ClassVar[int | None] = 2

    @property
    def has_fixed_length(self) -> bool:
        return False

    def read(self, data: DataInput, field: str) -> Value:
        key, value = self.parts
        return tuple([(key.read(data, field), read_map_value(data, value, field)) for _ in range(data.count(field, 2))])

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        keys, values = self.parts
        out.i32(len(_sequence(out, value, None, field)), field)
        for pair in value:
            key, content = _sequence(out, pair, 2, field)
            keys.write(key, out, field)
            out.i8(content is None, field)
            if content is not None:
                values.write(content, out, field)


@dataclass(frozen=True, slots=True)
class TimerSerializer(CompositeSerializer):
    """`streaming.api.operators.TimerSerializer`. A value is a `Timer`."""

    class_name: ClassVar[str] = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"
    name: ClassVar[str] = "Timer"
    number_of_parts: ClassVar[int | None] = 2
    outer_version: ClassVar[int] = 2

    def read(self, data: DataInput, field: str) -> Value:
        key, namespace = self.parts
        return Timer(read_timestamp(data, field), key.read(data, field), namespace.read(data, field))

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        key, namespace = self.parts
        timestamp, of_key, of_namespace = _sequence(out, value, 3, field)
        if not isinstance(timestamp, int) or not -_FLIPPED <= timestamp < _FLIPPED:
            raise out.error(field, f"{timestamp!r} is not an integer of 64 bits")
        out.raw((timestamp + _FLIPPED).to_bytes(8, "big"))
        key.write(of_key, out, field)
        namespace.write(of_namespace, out, field)


@dataclass(frozen=True, slots=True)
class TupleSerializer(CompositeSerializer):
    """`TupleSerializer`. A value is a tuple.

    Args:
        parts: serializers of the fields.
        tuple_class: Java class of the tuple.
    """

    tuple_class: str

    class_name: ClassVar[str] = "org.apache.flink.api.java.typeutils.runtime.TupleSerializerSnapshot"
    name: ClassVar[str] = "Tuple"
    number_of_parts: ClassVar[int | None] = None
    outer_version: ClassVar[int] = 2

    @classmethod
    def of(cls, *parts: Serializer) -> TupleSerializer:
        """Serializer of Flink's tuple with these fields."""
        return cls(parts, f"{_TUPLE}{len(parts)}")

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        return (data.utf("tuple_class"),)

    def write_outer(self, out: DataOutput) -> None:
        out.utf(self.tuple_class, "tuple_class")

    def read(self, data: DataInput, field: str) -> Value:
        return tuple([part.read(data, field) for part in self.parts])

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        for part, item in zip(self.parts, _sequence(out, value, len(self.parts), field), strict=True):
            part.write(item, out, field)

    def hash_code(self, value: Any) -> int | None:
        if self.tuple_class != f"{_TUPLE}{len(self.parts)}":
            return None  # A class of the user's may have a hash of its own.
        code = 0
        for part, item in zip(self.parts, value, strict=True):
            if (of_item := part.hash_code(item)) is None:
                return None
            code = 31 * code + of_item & _U32
        return code


@dataclass(frozen=True, slots=True)
class RowSerializer(CompositeSerializer):
    """`RowSerializer`. A value is a `Row`.

    Args:
        parts: serializers of the fields.
        has_row_kind: True if values have their row kind.
    """

    has_row_kind: bool = True

    class_name: ClassVar[str] = "org.apache.flink.api.java.typeutils.runtime.RowSerializer$RowSerializerSnapshot"
    name: ClassVar[str] = "Row"
    number_of_parts: ClassVar[int | None] = None
    outer_version: ClassVar[int] = 4

    @property
    def has_fixed_length(self) -> bool:
        return False

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        return (data.boolean("has_row_kind"),)

    def write_outer(self, out: DataOutput) -> None:
        out.i8(self.has_row_kind, "has_row_kind")

    @property
    def kind_bits(self) -> int:
        """Bits of a row's kind, before those of the null fields."""
        return _KIND_BITS if self.has_row_kind else 0

    def read(self, data: DataInput, field: str) -> Value:
        size = self.kind_bits + len(self.parts)
        mask = data.raw((size + 7) // 8, field)
        bits = [mask[bit // 8] >> 7 - bit % 8 & 1 for bit in range(size)]
        kind = bits[0] | bits[1] << 1 if self.has_row_kind else 0
        nulls = bits[self.kind_bits :]
        return Row(
            kind,
            tuple([None if null else part.read(data, field) for part, null in zip(self.parts, nulls, strict=True)]),
        )

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        if not isinstance(value, Row) or not 0 <= value.kind < (_ROW_KINDS if self.has_row_kind else 1):
            raise out.error(field, f"{value!r} is not a Row of this kind")
        fields = _sequence(out, value.fields, len(self.parts), field)
        bits = [*((value.kind & 1, value.kind >> 1) if self.has_row_kind else ()), *(item is None for item in fields)]
        mask = bytearray((len(bits) + 7) // 8)
        for number, bit in enumerate(bits):
            mask[number // 8] |= bit << 7 - number % 8
        out.raw(bytes(mask))
        for part, item in zip(self.parts, fields, strict=True):
            if item is not None:
                part.write(item, out, field)

    def hash_code(self, value: Any) -> int | None:
        kind: int = value.kind
        code = 1
        for part, item in zip(self.parts, value.fields, strict=True):
            # As of an array with the item alone (`RowUtils.deepHashCodeInternal`).
            of_item = -31 if item is None else part.hash_code(item)
            if of_item is None:
                return None
            code = 31 * code + 31 + of_item & _U32
        return 31 * kind + code & _U32


@dataclass(frozen=True, slots=True)
class NullableSerializer(CompositeSerializer):
    """`NullableSerializer`. A value is that of its part, or None.

    Args:
        parts: the serializer of values that are not null.
        padding: bytes that stand for null, so that all values have the same length; 0 for none.
    """

    padding: int = 0

    class_name: ClassVar[str] = (
        "org.apache.flink.api.java.typeutils.runtime.NullableSerializer$NullableSerializerSnapshot"
    )
    name: ClassVar[str] = "Nullable"
    number_of_parts: ClassVar[int | None] = 1
    outer_version: ClassVar[int] = 2

    @property
    def has_fixed_length(self) -> bool:
        return self.padding > 0

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        at = data.position
        if (padding := data.i32("padding")) < 0:
            data.fail("padding", f"negative padding {padding}", at)
        return (padding,)

    def write_outer(self, out: DataOutput) -> None:
        out.i32(self.padding, "padding")

    def read(self, data: DataInput, field: str) -> Value:
        if not data.boolean(field):
            return self.parts[0].read(data, field)
        data.raw(self.padding, field)
        return None

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        out.i8(value is None, field)
        if value is None:
            out.raw(bytes(self.padding))
        else:
            self.parts[0].write(value, out, field)

    def hash_code(self, value: Any) -> int | None:
        return None if value is None else self.parts[0].hash_code(value)


@dataclass(frozen=True, slots=True)
class TtlSerializer(CompositeSerializer):
    """`TtlStateFactory.TtlSerializer`. A value is a `TtlValue`."""

    class_name: ClassVar[str] = "org.apache.flink.runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot"
    name: ClassVar[str] = "TTL"
    number_of_parts: ClassVar[int | None] = 2
    outer_version: ClassVar[int] = 2

    def read(self, data: DataInput, field: str) -> Value:
        return TtlValue(data.i64(field), self.parts[1].read(data, field))

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        last_access, content = _sequence(out, value, 2, field)
        out.i64(last_access, field)
        self.parts[1].write(content, out, field)

    def __str__(self) -> str:
        return f"{self.name}<{self.parts[1]}>"


SERIALIZERS = (
    ListSerializer,
    MapSerializer,
    TimerSerializer,
    TupleSerializer,
    RowSerializer,
    NullableSerializer,
    TtlSerializer,
)
