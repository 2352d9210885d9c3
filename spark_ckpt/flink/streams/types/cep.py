"""Serializers of Flink's library for complex event processing, whose states `MATCH_RECOGNIZE` has as well.

DeweyNumber         i32 n, n times i32
EventId             i32 id, i64 timestamp
NodeId              u8 0 for null; else EventId, String page
SharedBufferEdge    NodeId target, DeweyNumber
SharedBufferNode    i32 n, n times i32 reference count, SharedBufferEdge
Lockable            i32 reference count, value
NFAState            partial, then completed matches: i32 n, n times String state, NodeId, DeweyNumber, i64 start, i64
                    previous timestamp unless the snapshot says no, u8 1 and EventId of the start or u8 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from spark_ckpt.flink.streams.types.base import CompositeSerializer, ConfiguredSerializer, SimpleSerializer
from spark_ckpt.flink.streams.values import (
    ComputationState,
    EventId,
    Lockable,
    NFAState,
    NodeId,
    SharedBufferEdge,
    Value,
    read_string,
)
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_CEP = "org.apache.flink.cep.nfa"
_BUFFER = f"{_CEP}.sharedbuffer"
_MIN_EDGE = 4 + 1 + 4
_MIN_STATE = 1 + 1 + 4 + 8 + 1


def _read_dewey_number(data: DataInput, field: str) -> Value:
    return tuple([data.i32(field) for _ in range(data.count(field, 4))])


def _read_event_id(data: DataInput, field: str) -> EventId:
    return EventId(data.i32(field), data.i64(field))


def _write(out: DataOutput, value: Any, field: str) -> None:
    raise out.error(field, "a value of Flink's CEP can be read, but not written")


DEWEY_NUMBER = SimpleSerializer(
    "DeweyNumber",
    f"{_CEP}.DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot",
    _read_dewey_number,
    _write,
    fixed=False,
)
EVENT_ID = SimpleSerializer(
    "EventId", f"{_BUFFER}.EventId$EventIdSerializer$EventIdSerializerSnapshot", _read_event_id, _write
)


@dataclass(frozen=True, slots=True)
class _CepSerializer(CompositeSerializer):
    """Serializer whose values are read only, and have no fixed length."""

    @property
    def has_fixed_length(self) -> bool:
        return False

    def write(self, value: Any, out: DataOutput, field: str) -> None:
        _write(out, value, field)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class NodeIdSerializer(_CepSerializer):
    """`NodeIdSerializer`. A value is a `NodeId` or None."""

    class_name: ClassVar[str] = f"{_BUFFER}.NodeId$NodeIdSerializer$NodeIdSerializerSnapshot"
    name: ClassVar[str] = "NodeId"
    number_of_parts: ClassVar[int | None] = 1

    def read(self, data: DataInput, field: str) -> NodeId | None:
        return NodeId(self.parts[0].read(data, field), read_string(data, field)) if data.u8(field) else None


@dataclass(frozen=True, slots=True)
class SharedBufferEdgeSerializer(_CepSerializer):
    """`SharedBufferEdgeSerializer`. A value is a `SharedBufferEdge`."""

    class_name: ClassVar[str] = (
        f"{_BUFFER}.SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot"
    )
    name: ClassVar[str] = "SharedBufferEdge"
    number_of_parts: ClassVar[int | None] = 2

    def read(self, data: DataInput, field: str) -> SharedBufferEdge:
        target, number = self.parts
        return SharedBufferEdge(target.read(data, field), number.read(data, field))


@dataclass(frozen=True, slots=True)
class SharedBufferNodeSerializer(_CepSerializer):
    """`SharedBufferNodeSerializer`. A value is a tuple of `Lockable` edges."""

    class_name: ClassVar[str] = f"{_BUFFER}.SharedBufferNodeSerializerSnapshotV2"
    name: ClassVar[str] = "SharedBufferNode"
    number_of_parts: ClassVar[int | None] = 1

    def read(self, data: DataInput, field: str) -> Value:
        (edge,) = self.parts
        count = data.count(field, _MIN_EDGE)
        return tuple([Lockable(data.i32(field), edge.read(data, field)) for _ in range(count)])


@dataclass(frozen=True, slots=True)
class LockableSerializer(_CepSerializer):
    """`Lockable.LockableTypeSerializer`. A value is a `Lockable`."""

    class_name: ClassVar[str] = f"{_BUFFER}.LockableTypeSerializerSnapshot"
    name: ClassVar[str] = "Lockable"
    number_of_parts: ClassVar[int | None] = 1

    def read(self, data: DataInput, field: str) -> Lockable:
        return Lockable(data.i32(field), self.parts[0].read(data, field))

    def __str__(self) -> str:
        return f"{self.name}<{self.parts[0]}>"


@dataclass(frozen=True, slots=True)
class NFAStateSerializer(_CepSerializer):
    """`NFAStateSerializer`. A value is an `NFAState`.

    Args:
        parts: serializers of a version, of a `NodeId` and of an `EventId`.
        has_previous_timestamp: True if values have the timestamp of the event before.
    """

    has_previous_timestamp: bool = True

    class_name: ClassVar[str] = f"{_CEP}.NFAStateSerializerSnapshot"
    name: ClassVar[str] = "NFAState"
    number_of_parts: ClassVar[int | None] = 3
    outer_version: ClassVar[int] = 2

    @classmethod
    def read_outer(cls, data: DataInput, version: int) -> tuple[Any, ...]:
        return (version >= cls.outer_version and data.boolean("has_previous_timestamp"),)

    def write_outer(self, out: DataOutput) -> None:
        out.i8(self.has_previous_timestamp, "has_previous_timestamp")

    def read(self, data: DataInput, field: str) -> NFAState:
        return NFAState(self._matches(data, field), self._matches(data, field))

    def _matches(self, data: DataInput, field: str) -> tuple[Value, ...]:
        return tuple([self._match(data, field) for _ in range(data.count(field, _MIN_STATE))])

    def _match(self, data: DataInput, field: str) -> ComputationState:
        version, node, event = self.parts
        return ComputationState(
            read_string(data, field),
            node.read(data, field),
            version.read(data, field),
            data.i64(field),
            data.i64(field) if self.has_previous_timestamp else None,
            event.read(data, field) if data.u8(field) else None,
        )


SIMPLE: tuple[SimpleSerializer, ...] = (DEWEY_NUMBER, EVENT_ID)
SERIALIZERS: tuple[type[ConfiguredSerializer], ...] = (
    NodeIdSerializer,
    SharedBufferEdgeSerializer,
    SharedBufferNodeSerializer,
    LockableSerializer,
    NFAStateSerializer,
)
