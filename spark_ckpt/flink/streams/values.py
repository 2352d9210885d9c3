"""Values of Flink's serializers in Python, and readers of those that headers and streams need as well."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import NamedTuple, TypeAlias

from spark_ckpt.metadata.data_input import DataInput

Value: TypeAlias = "bool | int | float | Decimal | str | bytes | tuple[Value, ...] | None"
"""Value in Python. Lists are tuples; maps are tuples of pairs, because a damaged map may have duplicate keys."""


class Timer(NamedTuple):
    """Element of a timer queue (`streaming.api.operators.TimerHeapInternalTimer`).

    Args:
        timestamp: milliseconds since 1970.
        key: key of the timer.
        namespace: namespace of the timer.
    """

    timestamp: int
    key: Value
    namespace: Value


class TimeWindow(NamedTuple):
    """Namespace of windowed state (`streaming.api.windowing.windows.TimeWindow`).

    Args:
        start: milliseconds since 1970, inclusive.
        end: milliseconds since 1970, exclusive.
    """

    start: int
    end: int


class CountWindow(NamedTuple):
    """Namespace of state in windows of rows (`table.runtime.operators.window.CountWindow`).

    Args:
        id: number of the window.
    """

    id: int


class TtlValue(NamedTuple):
    """Value of a state with a time to live (`runtime.state.ttl.TtlValue`).

    Args:
        last_access: milliseconds since 1970.
        value: value of the state.
    """

    last_access: int
    value: Value


class Row(NamedTuple):
    """Row of the DataStream API (`types.Row`).

    Args:
        kind: ordinal of the row kind: 0 `+I`, 1 `-U`, 2 `+U`, 3 `-D`.
        fields: fields by position.
    """

    kind: int
    fields: tuple[Value, ...]


class RowData(NamedTuple):
    """Row of Flink SQL (`table.data.binary.BinaryRowData`).

    Args:
        kind: ordinal of the row kind, as in `Row`.
        fields: fields by position.
        binary: bytes of the row as read; empty for a row that is yet to be encoded. Rows with the same fields may
            differ in them, and the hash of a key depends on them.
    """

    kind: int
    fields: tuple[Value, ...]
    binary: bytes = b""


class Timestamp(NamedTuple):
    """Timestamp of Flink SQL (`table.data.TimestampData`).

    Args:
        millis: milliseconds since 1970.
        nanos: nanoseconds of the millisecond, 0 to 999,999.
    """

    millis: int
    nanos: int = 0


class SqlTimestamp(NamedTuple):
    """`java.sql.Timestamp`.

    Args:
        millis: milliseconds since 1970.
        nanos: nanoseconds of the second, the milliseconds included.
    """

    millis: int
    nanos: int


class Instant(NamedTuple):
    """`java.time.Instant`.

    Args:
        seconds: seconds since 1970.
        nanos: nanoseconds of the second.
    """

    seconds: int
    nanos: int


class LocalDate(NamedTuple):
    """`java.time.LocalDate`, whose years exceed those of Python."""

    year: int
    month: int
    day: int


class LocalTime(NamedTuple):
    """`java.time.LocalTime`, whose nanoseconds Python lacks."""

    hour: int
    minute: int
    second: int
    nanos: int


class LocalDateTime(NamedTuple):
    """`java.time.LocalDateTime`."""

    date: LocalDate
    time: LocalTime


class EventId(NamedTuple):
    """Event of a pattern (`cep.nfa.sharedbuffer.EventId`).

    Args:
        id: number among the events of a timestamp.
        timestamp: milliseconds since 1970.
    """

    id: int
    timestamp: int


class NodeId(NamedTuple):
    """Event at a stage of a pattern (`cep.nfa.sharedbuffer.NodeId`).

    Args:
        event_id: the `EventId`.
        page: name of the stage.
    """

    event_id: Value
    page: str | None


class SharedBufferEdge(NamedTuple):
    """Link to the event before (`cep.nfa.sharedbuffer.SharedBufferEdge`).

    Args:
        target: its `NodeId`, or None.
        version: digits of the version of the match.
    """

    target: Value
    version: Value


class Lockable(NamedTuple):
    """Value with the number of its references (`cep.nfa.sharedbuffer.Lockable`)."""

    references: int
    value: Value


class ComputationState(NamedTuple):
    """Match of a part of a pattern (`cep.nfa.ComputationState`).

    Args:
        state: name of the current stage.
        previous: `NodeId` of the last event, or None.
        version: digits of its version.
        start_timestamp: milliseconds since 1970 of the first event; -1 for none.
        previous_timestamp: of the last event; None before Flink 1.18, which lacks it.
        start_event: `EventId` of the first event, or None.
    """

    state: str | None
    previous: Value
    version: Value
    start_timestamp: int
    previous_timestamp: int | None
    start_event: Value


class NFAState(NamedTuple):
    """Matches of a key (`cep.nfa.NFAState`).

    Args:
        partial_matches: a `ComputationState` of each.
        completed_matches: matches of whole patterns.
    """

    partial_matches: tuple[Value, ...]
    completed_matches: tuple[Value, ...]


NAMED = (
    Timer,
    TimeWindow,
    CountWindow,
    EventId,
    NodeId,
    SharedBufferEdge,
    Lockable,
    ComputationState,
    NFAState,
    TtlValue,
    Row,
    RowData,
    Timestamp,
    SqlTimestamp,
    Instant,
    LocalDate,
    LocalTime,
    LocalDateTime,
)
"""Types of values whose parts have names."""


def read_char(data: DataInput, field: str) -> str:
    """`CharSerializer`: one UTF-16 code unit."""
    return chr(data.u16(field))


def read_i16(data: DataInput, field: str) -> int:
    """`ShortSerializer`."""
    value = data.u16(field)
    return value - (1 << 16) if value >= 1 << 15 else value


def read_f32(data: DataInput, field: str) -> float:
    """`FloatSerializer`."""
    value: float = struct.unpack(">f", data.raw(4, field))[0]
    return value


def read_f64(data: DataInput, field: str) -> float:
    """`DoubleSerializer`."""
    value: float = struct.unpack(">d", data.raw(8, field))[0]
    return value


def read_string(data: DataInput, field: str) -> str | None:
    """`StringSerializer`: number of UTF-16 code units plus 1 (0 for null), then each unit, all as varints."""
    length = read_varint(data, field, 32)
    if length == 0:
        return None
    # Each unit has at least one byte, and mostly only one. Read that many at once.
    units = data.raw(length - 1, field)
    if units.isascii():
        return units.decode("ascii")
    return _with_long_units(data, field, units)


def _with_long_units(data: DataInput, field: str, read: bytes) -> str:
    count = len(read)
    data.position -= count
    text = b"".join(read_varint(data, field, 16).to_bytes(2, "big") for _ in range(count))
    return text.decode("utf-16-be", "surrogatepass")


def read_varint(data: DataInput, field: str, bits: int) -> int:
    """An unsigned integer of a number of bits: 7 bits a byte, lowest first."""
    at = data.position
    value = shift = 0
    while (byte := data.u8(field)) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift >= bits:
            data.fail(field, f"a number longer than {bits} bits", at)
    value |= byte << shift
    if value >> bits:
        data.fail(field, f"a number longer than {bits} bits", at)
    return value


def read_void(data: DataInput, field: str) -> None:
    """`VoidNamespaceSerializer`: a byte that is always 0."""
    at = data.position
    if (byte := data.u8(field)) != 0:
        data.fail(field, f"{byte} instead of 0 for a VoidNamespace", at)


def read_time_window(data: DataInput, field: str) -> TimeWindow:
    """`TimeWindow.Serializer`."""
    return TimeWindow(data.i64(field), data.i64(field))


def read_count_window(data: DataInput, field: str) -> CountWindow:
    """`CountWindow.Serializer`."""
    return CountWindow(data.i64(field))


def read_placeholder(data: DataInput, field: str) -> None:
    """`NullSerializer`, `GlobalWindow.Serializer`: a byte without a meaning."""
    data.u8(field)


def read_timestamp(data: DataInput, field: str) -> int:
    """First field of `TimerSerializer`. Its sign bit is flipped, so that bytes sort like numbers."""
    flipped = data.i64(field)
    return flipped + (1 << 63) if flipped < 0 else flipped - (1 << 63)
