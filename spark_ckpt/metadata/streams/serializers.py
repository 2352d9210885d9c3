"""Serializer snapshots: description of the serializers of a stream, and decoding of their values.

    SER     i32 2, then a snapshot                                 `TypeSerializerSnapshotSerializationUtil`
    SNAP    utf class, i32 version, fields of the class            `TypeSerializerSnapshot.writeVersionedSnapshot`

A snapshot has no length prefix: only its class determines its end. So a class outside the table below makes the rest of
the stream unreadable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.streams import assignment, values
from spark_ckpt.metadata.streams.errors import UnknownSerializerError
from spark_ckpt.metadata.streams.stream_input import StreamInput
from spark_ckpt.metadata.streams.values import Timer, Value

_SERIALIZER_VERSION = 2
_SIMPLE_VERSION, _SIMPLE_VERSION_WITH_NAME = 3, 2
_COMPOSITE_VERSION = 3
_OUTER_MAGIC, _NESTED_MAGIC, _NESTED_VERSION = 911108, 1333245, 1
_LEAST_SNAPSHOT = 2 + 4


@dataclass(frozen=True, slots=True)
class Serializer:
    """Serializer, from its snapshot (`TypeSerializerSnapshot`).

    Args:
        snapshot_class: Java class of the snapshot.
        nested: nested serializers: of the elements of a list, of the keys and values of a map, or of the key and
            namespace of a timer.
    """

    snapshot_class: str
    nested: tuple[Serializer, ...] = ()

    @property
    def has_fixed_length(self) -> bool:
        """True if all values have the same length (`TypeSerializer.getLength` is not -1)."""
        return _KINDS[self.snapshot_class].has_fixed_length and all(part.has_fixed_length for part in self.nested)

    def read(self, data: DataInput, field: str) -> Value:
        """Read a value.

        Raises:
            StateStreamFormatError: malformed value.
        """
        return _KINDS[self.snapshot_class].read(self, data, field)

    def hash_code(self, value: Value) -> int | None:
        """Java's `hashCode` of a value; None if unknown."""
        hash_code = _KINDS[self.snapshot_class].hash_code
        return None if hash_code is None or value is None else hash_code(value)

    def __str__(self) -> str:
        name = _KINDS[self.snapshot_class].name
        return f"{name}<{', '.join(map(str, self.nested))}>" if self.nested else name


def read_serializer(data: StreamInput, field: str) -> Serializer:
    """Read `SER`.

    Raises:
        UnknownSerializerError: unknown snapshot class.
        StateStreamFormatError: malformed snapshot.
    """
    data.enter(field)
    _expect(data, "version", _SERIALIZER_VERSION)
    serializer = _read_snapshot(data)
    data.leave()
    return serializer


def _read_snapshot(data: StreamInput) -> Serializer:
    at = data.position
    name = data.utf("class_name")
    if (kind := _KINDS.get(name)) is None:
        raise UnknownSerializerError(data.path, at, data.where("class_name"), name)
    at = data.position
    version = data.i32("snapshot_version")
    if not kind.parts:
        if version == _SIMPLE_VERSION_WITH_NAME:
            data.utf("serializer_class")
        elif version != _SIMPLE_VERSION:
            data.fail("snapshot_version", f"unknown version {version} of {name}", at)
        return Serializer(name)
    if version != _COMPOSITE_VERSION:
        data.fail("snapshot_version", f"unknown version {version} of {name}", at)
    _expect(data, "outer_magic_number", _OUTER_MAGIC)
    data.i32("outer_version")
    _expect(data, "nested_magic_number", _NESTED_MAGIC)
    _expect(data, "nested_version", _NESTED_VERSION)
    at = data.position
    if (count := data.count("nested", _LEAST_SNAPSHOT)) != kind.parts:
        data.fail("nested", f"{count} nested serializers instead of {kind.parts} in {name}", at)
    nested = []
    for index in range(count):
        data.enter("nested", index)
        nested.append(_read_snapshot(data))
        data.leave()
    return Serializer(name, tuple(nested))


def _expect(data: DataInput, field: str, expected: int) -> None:
    at = data.position
    if (found := data.i32(field)) != expected:
        data.fail(field, f"{found} instead of {expected}", at)


# ---- values ----------------------------------------------------------------------------------------------------------


def read_map_value(data: DataInput, serializer: Serializer, field: str) -> Value:
    """Value of a map: bool is null, then the value unless null (`MapSerializer`, `RocksDBMapState`)."""
    return None if data.boolean(field) else serializer.read(data, field)


def _read_list(serializer: Serializer, data: DataInput, field: str) -> Value:
    (element,) = serializer.nested
    # Every value has at least one byte.
    return tuple(element.read(data, field) for _ in range(data.count(field, 1)))


def _read_map(serializer: Serializer, data: DataInput, field: str) -> Value:
    key, value = serializer.nested
    return tuple((key.read(data, field), read_map_value(data, value, field)) for _ in range(data.count(field, 2)))


def _read_timer(serializer: Serializer, data: DataInput, field: str) -> Value:
    key, namespace = serializer.nested
    return Timer(values.read_timestamp(data, field), key.read(data, field), namespace.read(data, field))


_Read: TypeAlias = Callable[[Serializer, DataInput, str], Value]


class _Kind(NamedTuple):
    """Properties of a known serializer.

    Args:
        name: human-readable name.
        read: reads a value.
        has_fixed_length: True if all values have the same length, provided that nested values do.
        parts: number of nested serializers; without any, the snapshot is a `SimpleTypeSerializerSnapshot`.
        hash_code: returns Java's `hashCode` of a value; None if unknown.
    """

    name: str
    read: _Read
    has_fixed_length: bool = True
    parts: int = 0
    hash_code: Callable[[Any], int] | None = None


def _simple(
    name: str,
    read: Callable[[DataInput, str], Value],
    *,
    has_fixed_length: bool = True,
    hash_code: Callable[[Any], int] | None = None,
) -> _Kind:
    return _Kind(name, lambda _, data, field: read(data, field), has_fixed_length, hash_code=hash_code)


def _itself(value: int) -> int:
    return value


_BASE = "org.apache.flink.api.common.typeutils.base"

_KINDS = {
    **{
        f"{_BASE}.{kind.name}Serializer${kind.name}SerializerSnapshot": kind
        for kind in (
            _simple("Boolean", DataInput.boolean),
            _simple("Byte", DataInput.i8, hash_code=_itself),
            _simple("Short", values.read_i16, hash_code=_itself),
            _simple("Int", DataInput.i32, hash_code=_itself),
            _simple("Long", DataInput.i64, hash_code=assignment.hash_of_long),
            _simple("Float", values.read_f32),
            _simple("Double", values.read_f64),
            _simple("String", values.read_string, has_fixed_length=False, hash_code=assignment.hash_of_string),
        )
    },
    f"{_BASE}.array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot": _simple(
        "byte[]", DataInput.byte_array, has_fixed_length=False
    ),
    "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot": _simple(
        "VoidNamespace", values.read_void
    ),
    "org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot": _simple(
        "TimeWindow", values.read_time_window
    ),
    f"{_BASE}.ListSerializerSnapshot": _Kind("List", _read_list, has_fixed_length=False, parts=1),
    f"{_BASE}.MapSerializerSnapshot": _Kind("Map", _read_map, has_fixed_length=False, parts=2),
    "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot": _Kind("Timer", _read_timer, parts=2),
}
