"""Numbers, bytes, and namespaces."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from spark_ckpt.flink.streams import assignment
from spark_ckpt.flink.streams.types.base import BASE, SimpleSerializer
from spark_ckpt.flink.streams.values import (
    CountWindow,
    TimeWindow,
    read_char,
    read_count_window,
    read_f32,
    read_f64,
    read_i16,
    read_placeholder,
    read_time_window,
    read_void,
)
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_SQL_WINDOWS = "org.apache.flink.table.runtime.operators.window"
_NAN_32, _NAN_64 = 0x7FC00000, 0x7FF8000000000000


def writer(code: str, what: str) -> Callable[[DataOutput, Any, str], None]:
    """Writer of one value of a `struct` format.

    Args:
        code: format of one value.
        what: description of the values that fit, for errors.
    """
    packer = struct.Struct(code)

    def write(out: DataOutput, value: Any, field: str) -> None:
        try:
            out.raw(packer.pack(value))
        except (struct.error, OverflowError, TypeError):
            raise out.error(field, f"{value!r} is not {what}") from None

    return write


def _write_bytes(out: DataOutput, value: Any, field: str) -> None:
    if not isinstance(value, bytes):
        raise out.error(field, f"{value!r} is not bytes")
    out.byte_array(value, field)


def _write_char(out: DataOutput, value: Any, field: str) -> None:
    if not isinstance(value, str) or len(value) != 1 or ord(value) > 0xFFFF:
        raise out.error(field, f"{value!r} is not one UTF-16 code unit")
    out.raw(ord(value).to_bytes(2, "big"))


def _write_void(out: DataOutput, value: Any, field: str) -> None:
    if value is not None:
        raise out.error(field, f"{value!r} is not None")
    out.raw(b"\0")


def _write_time_window(out: DataOutput, value: Any, field: str) -> None:
    if not isinstance(value, TimeWindow):
        raise out.error(field, f"{value!r} is not a TimeWindow")
    out.i64(value.start, field)
    out.i64(value.end, field)


def _write_count_window(out: DataOutput, value: Any, field: str) -> None:
    if not isinstance(value, CountWindow):
        raise out.error(field, f"{value!r} is not a CountWindow")
    out.i64(value.id, field)


def _itself(value: int) -> int:
    return value


def _hash_of_boolean(value: bool) -> int:
    return 1231 if value else 1237


def _hash_of_float(value: float) -> int:
    return _NAN_32 if value != value else int.from_bytes(struct.pack(">f", value), "big")


def _hash_of_double(value: float) -> int:
    return assignment.hash_of_long(
        _NAN_64 if value != value else int.from_bytes(struct.pack(">d", value), "big", signed=True)
    )


def _base(name: str, reads: Any, code: str, what: str, hashes: Callable[[Any], int] | None) -> SimpleSerializer:
    return SimpleSerializer(
        name, f"{BASE}.{name}Serializer${name}SerializerSnapshot", reads, writer(code, what), hashes=hashes
    )


BOOLEAN = _base("Boolean", DataInput.boolean, ">?", "a boolean", _hash_of_boolean)
BYTE = _base("Byte", DataInput.i8, ">b", "an integer of 8 bits", _itself)
SHORT = _base("Short", read_i16, ">h", "an integer of 16 bits", _itself)
INT = _base("Int", DataInput.i32, ">i", "an integer of 32 bits", _itself)
LONG = _base("Long", DataInput.i64, ">q", "an integer of 64 bits", assignment.hash_of_long)
FLOAT = _base("Float", read_f32, ">f", "a float of 32 bits", _hash_of_float)
DOUBLE = _base("Double", read_f64, ">d", "a float", _hash_of_double)
CHAR = SimpleSerializer("Char", f"{BASE}.CharSerializer$CharSerializerSnapshot", read_char, _write_char, hashes=ord)
BYTES = SimpleSerializer(
    "byte[]",
    f"{BASE}.array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot",
    DataInput.byte_array,
    _write_bytes,
    fixed=False,
)
VOID_NAMESPACE = SimpleSerializer(
    "VoidNamespace",
    "org.apache.flink.runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot",
    read_void,
    _write_void,
)
TIME_WINDOW = SimpleSerializer(
    "TimeWindow",
    "org.apache.flink.streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot",
    read_time_window,
    _write_time_window,
)
SQL_TIME_WINDOW = SimpleSerializer(
    "sql.TimeWindow",
    f"{_SQL_WINDOWS}.TimeWindow$Serializer$TimeWindowSerializerSnapshot",
    read_time_window,
    _write_time_window,
)
SQL_COUNT_WINDOW = SimpleSerializer(
    "sql.CountWindow",
    f"{_SQL_WINDOWS}.CountWindow$Serializer$CountWindowSerializerSnapshot",
    read_count_window,
    _write_count_window,
)
GLOBAL_WINDOW = SimpleSerializer(
    "GlobalWindow",
    "org.apache.flink.streaming.api.windowing.windows.GlobalWindow$Serializer$GlobalWindowSerializerSnapshot",
    read_placeholder,
    _write_void,
)
SQL_NULL = SimpleSerializer(
    "sql.Null",
    "org.apache.flink.table.dataview.NullSerializer$NullSerializerSnapshot",
    read_placeholder,
    _write_void,
)

SERIALIZERS = (
    BOOLEAN,
    BYTE,
    SHORT,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    CHAR,
    BYTES,
    VOID_NAMESPACE,
    TIME_WINDOW,
    SQL_TIME_WINDOW,
    SQL_COUNT_WINDOW,
    GLOBAL_WINDOW,
    SQL_NULL,
)
