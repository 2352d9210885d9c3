"""Serializers around those of Flink SQL's values, mostly in the accumulators of aggregate functions.

External        the value of its part; the snapshot has the `DataType` as a Java object, and whether values are internal
RawValue        i32 length, then the value of its part
MapView         the value of its part, a Map; ListView that of a List
NullAwareMap    i32 n, n times bool is null, key unless null, bool is null, value unless null
LinkedList      i32 n, a bit for each null element, the highest first, unless the snapshot says no; elements not null
SortedMap       i32 n, n times key, bool is null, value unless null; the snapshot has the comparator as a Java object
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import (
    TABLE,
    CompositeSerializer,
    ConfiguredSerializer,
    ReadNested,
    Serializer,
    write_nested,
)
from spark_ckpt.flink.streams.types.composites import read_items, read_map_value
from spark_ckpt.flink.streams.types.java_structure import read_java
from spark_ckpt.flink.streams.values import Value
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

if TYPE_CHECKING:
    from typing_extensions import Self

_VIEWS = "org.apache.flink.table.dataview"
_FIRST_WITH_NULLS, _FIRST_WITH_FLAG = 2, 3


@dataclass(frozen=True, slots=True)
class _ReadOnlySerializer(CompositeSerializer):
    """Serializer whose values are read only, and have no fixed length."""

    @property
    def has_fixed_length(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class ExternalSerializer(_ReadOnlySerializer):
    """`ExternalSerializer`. A value is that of its part.

    Args:
        parts: the serializer of the values in their internal form.
        data_type: type of the values, and whether they are internal, as read.
    """

    data_type: bytes = field(default=b"", compare=False, repr=False)

    class_name: ClassVar[str] = f"{TABLE}.ExternalSerializer$ExternalSerializerSnapshot"
    name: ClassVar[str] = "External"
    number_of_parts: ClassVar[int | None] = 1

    @property
    def has_fixed_length(self) -> bool:
        return self.parts[0].has_fixed_length

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        start = data.position
        read_java(data)
        data.boolean("is_internal")
        return (data.since(start),)

    def write_outer(self, out: DataOutput) -> None:
        if not self.data_type:
            raise out.error("data_type", f"a snapshot of {self} can be read, but not written")
        out.raw(self.data_type)

    def read(self, data: DataInput, field: str) -> Value:
        return self.parts[0].read(data, field)


@dataclass(frozen=True, slots=True)
class RawValueSerializer(_ReadOnlySerializer):
    """`RawValueDataSerializer`. A value is that of its part; bytes if that is unknown, since its end is not."""

    class_name: ClassVar[str] = f"{TABLE}.RawValueDataSerializer$RawValueDataSerializerSnapshot"
    name: ClassVar[str] = "RAW"
    number_of_parts: ClassVar[int | None] = 1
    outer_version: ClassVar[int] = 0

    @property
    def is_opaque(self) -> bool:
        return False

    def read(self, data: DataInput, field: str) -> Value:
        content = data.byte_array(field)
        return read_raw_value(self.parts[0], content, data.path, data.position - len(content), field)


@dataclass(frozen=True, slots=True)
class _ViewSerializer(_ReadOnlySerializer):
    """Serializer of a view, whose values are those of its part."""

    number_of_parts: ClassVar[int | None] = 1

    def read(self, data: DataInput, field: str) -> Value:
        return self.parts[0].read(data, field)


@dataclass(frozen=True, slots=True)
class MapViewSerializer(_ViewSerializer):
    """`MapViewSerializer`."""

    class_name: ClassVar[str] = f"{_VIEWS}.MapViewSerializerSnapshot"
    name: ClassVar[str] = "MapView"


@dataclass(frozen=True, slots=True)
class ListViewSerializer(_ViewSerializer):
    """`ListViewSerializer`."""

    class_name: ClassVar[str] = f"{_VIEWS}.ListViewSerializerSnapshot"
    name: ClassVar[str] = "ListView"


@dataclass(frozen=True, slots=True)
class NullAwareMapSerializer(_ReadOnlySerializer):
    """`NullAwareMapSerializer`. A value is a tuple of pairs."""

    class_name: ClassVar[str] = f"{_VIEWS}.NullAwareMapSerializerSnapshot"
    name: ClassVar[str] = "NullAwareMap"
    number_of_parts: ClassVar[int | None] = 2

    def read(self, data: DataInput, field: str) -> Value:
        key, value = self.parts
        count = data.count(field, 2)
        return tuple([(read_map_value(data, key, field), read_map_value(data, value, field)) for _ in range(count)])


@dataclass(frozen=True, slots=True)
class LinkedListSerializer(_ReadOnlySerializer):
    """`LinkedListSerializer`. A value is a tuple.

    Args:
        parts: the serializer of the elements.
        has_nulls: True if a value has a bit for each null element.
    """

    has_nulls: bool = True

    class_name: ClassVar[str] = f"{TABLE}.LinkedListSerializer$LinkedListSerializerSnapshot"
    name: ClassVar[str] = "LinkedList"
    number_of_parts: ClassVar[int | None] = 1
    outer_version: ClassVar[int] = _FIRST_WITH_FLAG

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        return (data.boolean("has_nulls") if version >= _FIRST_WITH_FLAG else version >= _FIRST_WITH_NULLS,)

    def write_outer(self, out: DataOutput) -> None:
        out.i8(self.has_nulls, "has_nulls")

    def read(self, data: DataInput, field: str) -> Value:
        (element,) = self.parts
        if not self.has_nulls:
            return read_items(data, element, data.count(field, 1), field)
        at = data.position
        count = data.count(field, 0)
        if (count + 7) // 8 > data.remaining:
            data.fail(field, f"a count of {count}, but only {data.remaining} bytes follow", at)
        nulls = data.raw((count + 7) // 8, field)
        return tuple([None if nulls[n // 8] >> 7 - n % 8 & 1 else element.read(data, field) for n in range(count)])


@dataclass(frozen=True, slots=True)
class SortedMapSerializer(ConfiguredSerializer):
    """`SortedMapSerializer`. A value is a tuple of pairs.

    Args:
        parts: serializers of the keys and values.
        comparator: comparator of the keys as read.
    """

    parts: tuple[Serializer, ...]
    comparator: bytes = field(default=b"", compare=False, repr=False)

    class_name: ClassVar[str] = f"{TABLE}.SortedMapSerializerSnapshot"

    @property
    def nested(self) -> tuple[Serializer, ...]:
        return self.parts

    @classmethod
    def read_content(cls, data: DataInput, read_nested: ReadNested) -> Self:
        start = data.position
        read_java(data)
        comparator = data.since(start)
        at = data.position
        parts = read_nested(data)
        if len(parts) != 2:
            data.fail("nested", f"{len(parts)} nested serializers instead of 2 in {cls.class_name}", at)
        return cls(parts, comparator)

    def write_content(self, out: DataOutput) -> None:
        if not self.comparator:
            raise out.error("comparator", f"a snapshot of {self} can be read, but not written")
        out.raw(self.comparator)
        write_nested(self.parts, out)

    def read(self, data: DataInput, field: str) -> Value:
        key, value = self.parts
        return tuple([(key.read(data, field), read_map_value(data, value, field)) for _ in range(data.count(field, 2))])

    def __str__(self) -> str:
        return f"SortedMap<{self.parts[0]}, {self.parts[1]}>"


def read_raw_value(serializer: Serializer, content: bytes, path: str, at: int, field: str) -> Value:
    """Value that fills bytes; the bytes themselves if the serializer is unknown.

    Args:
        serializer: serializer of the value.
        content: the bytes.
        path: name of their stream, for errors.
        at: their position in it.
        field: name of the value.

    Raises:
        StateStreamFormatError: malformed value, or bytes behind it.
    """
    if serializer.is_opaque:
        return content
    inside = StreamInput(iter([content]), path, at, at + len(content))
    value = serializer.read(inside, field)
    if inside.remaining:
        inside.fail(field, f"{inside.remaining} trailing bytes")
    return value


SERIALIZERS = (
    ExternalSerializer,
    RawValueSerializer,
    MapViewSerializer,
    ListViewSerializer,
    NullAwareMapSerializer,
    LinkedListSerializer,
    SortedMapSerializer,
)
