"""Values as Flink's serializers write them, one function for each known serializer."""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias

from spark_ckpt.metadata.data_input import DataInput

Value: TypeAlias = "bool | int | float | str | bytes | tuple[Value, ...] | None"
"""A value as Python has it. Lists are tuples, maps are tuples of pairs: a damaged one may have a key twice."""


class Timer(NamedTuple):
    """An element of a timer queue (`streaming.api.operators.TimerHeapInternalTimer`).

    Args:
        timestamp: milliseconds since 1970.
        key: the key it belongs to.
        namespace: the namespace it belongs to.
    """

    timestamp: int
    key: Value
    namespace: Value


class TimeWindow(NamedTuple):
    """The namespace of windowed state (`streaming.api.windowing.windows.TimeWindow`).

    Args:
        start: milliseconds since 1970, inclusive.
        end: the same, exclusive.
    """

    start: int
    end: int


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
    """`StringSerializer`: the number of UTF-16 units plus 1 (0 is null), then each unit, all of variable length."""
    length = _varint(data, field, 32)
    if length == 0:
        return None
    # Each unit has a byte at least, and mostly no more: these are read at once.
    units = data.raw(length - 1, field)
    if units.isascii():
        return units.decode("ascii")
    return _with_long_units(data, field, units)


def _with_long_units(data: DataInput, field: str, read: bytes) -> str:
    count = len(read)
    data.position -= count
    text = b"".join(_varint(data, field, 16).to_bytes(2, "big") for _ in range(count))
    return text.decode("utf-16-be", "surrogatepass")


def _varint(data: DataInput, field: str, bits: int) -> int:
    at = data.position
    value = shift = 0
    while (byte := data.u8(field)) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift >= bits:
            data.fail(field, f"a number of more than {bits} bits", at)
    value |= byte << shift
    if value >> bits:
        data.fail(field, f"a number of more than {bits} bits", at)
    return value


def read_void(data: DataInput, field: str) -> None:
    """`VoidNamespaceSerializer`: a byte that is always 0."""
    at = data.position
    if (byte := data.u8(field)) != 0:
        data.fail(field, f"{byte} where a VoidNamespace is 0", at)


def read_time_window(data: DataInput, field: str) -> TimeWindow:
    """`TimeWindow.Serializer`."""
    return TimeWindow(data.i64(field), data.i64(field))


def read_timestamp(data: DataInput, field: str) -> int:
    """The first field of `TimerSerializer`: its sign bit is flipped, so that bytes sort as numbers do."""
    flipped = data.i64(field)
    return flipped + (1 << 63) if flipped < 0 else flipped - (1 << 63)
