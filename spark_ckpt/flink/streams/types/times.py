"""Dates and times of Java.

Date, sql.Date, sql.Time    i64 milliseconds since 1970; null is the minimum
sql.Timestamp               i64 milliseconds since 1970, i32 nanoseconds of the second; null is the minimum and 0
Instant                     i64 seconds since 1970, i32 nanoseconds; null is both minima
LocalDate                   i32 year, i8 month, i8 day; null is the minima of i32 and i16
LocalTime                   i8 hour, i8 minute, i8 second, i32 nanoseconds; null is the minima of i8, i16 and i32
LocalDateTime               LocalDate, LocalTime
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error
from typing import Any

from spark_ckpt.flink.streams import assignment
from spark_ckpt.flink.streams.types.base import BASE, SimpleSerializer
from spark_ckpt.flink.streams.values import Instant, LocalDate, LocalDateTime, LocalTime, SqlTimestamp
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput

_MIN_8, _MIN_16, _MIN_32, _MIN_64 = -(1 << 7), -(1 << 15), -(1 << 31), -(1 << 63)
_MILLIS, _WITH_NANOS = Struct(">q"), Struct(">qi")
_DATE, _DATE_NULL = Struct(">ibb"), Struct(">ih").pack(_MIN_32, _MIN_16)
_TIME, _TIME_NULL = Struct(">bbbi"), Struct(">bhi").pack(_MIN_8, _MIN_16, _MIN_32)
_MONTHS, _DAYS, _HOURS, _MINUTES, _SECONDS, _NANOS = 12, 31, 24, 60, 60, 1_000_000_000


def _read_millis(data: DataInput, field: str) -> int | None:
    value = data.i64(field)
    return None if value == _MIN_64 else value


def _write_millis(out: DataOutput, value: Any, field: str) -> None:
    _pack(out, _MILLIS, (_MIN_64 if value is None else value,), field)


def _writer(kind: type[tuple[Any, ...]], struct: Struct, null: bytes) -> Callable[[DataOutput, Any, str], None]:
    """Writer of values of a kind, or of the bytes that stand for null."""

    def write(out: DataOutput, value: Any, field: str) -> None:
        if value is None:
            out.raw(null)
        else:
            _pack(out, struct, _as(out, value, kind, field), field)

    return write


_write_sql_timestamp = _writer(SqlTimestamp, _WITH_NANOS, _WITH_NANOS.pack(_MIN_64, 0))
_write_instant = _writer(Instant, _WITH_NANOS, _WITH_NANOS.pack(_MIN_64, _MIN_32))
_write_date = _writer(LocalDate, _DATE, _DATE_NULL)
_write_time = _writer(LocalTime, _TIME, _TIME_NULL)


def _read_sql_timestamp(data: DataInput, field: str) -> SqlTimestamp | None:
    value = SqlTimestamp(data.i64(field), _within(data, data.i32, field, 0, _NANOS))
    return None if value.millis == _MIN_64 else value


def _read_instant(data: DataInput, field: str) -> Instant | None:
    at = data.position
    value = Instant(data.i64(field), data.i32(field))
    if value == (_MIN_64, _MIN_32):
        return None
    if not 0 <= value.nanos < _NANOS:
        data.fail(field, f"{value.nanos} nanoseconds of a second", at + 8)
    return value


def _read_date(data: DataInput, field: str) -> LocalDate | None:
    at = data.position
    if (parts := _unpacked(data, _DATE, _DATE_NULL, field)) is None:
        return None
    value = LocalDate(*parts)
    if not (1 <= value.month <= _MONTHS and 1 <= value.day <= _DAYS):
        data.fail(field, f"no date: {value.year}-{value.month}-{value.day}", at)
    return value


def _read_time(data: DataInput, field: str) -> LocalTime | None:
    at = data.position
    if (parts := _unpacked(data, _TIME, _TIME_NULL, field)) is None:
        return None
    value = LocalTime(*parts)
    if not all(0 <= part < end for part, end in zip(value, (_HOURS, _MINUTES, _SECONDS, _NANOS), strict=True)):
        data.fail(field, f"no time of day: {':'.join(map(str, value))}", at)
    return value


def _read_date_time(data: DataInput, field: str) -> LocalDateTime | None:
    at = data.position
    date, time = _read_date(data, field), _read_time(data, field)
    if date is None and time is None:
        return None
    if date is None or time is None:
        data.fail(field, "a date without a time of day, or the reverse", at)
    return LocalDateTime(date, time)


def _write_date_time(out: DataOutput, value: Any, field: str) -> None:
    date, time = (None, None) if value is None else _as(out, value, LocalDateTime, field)
    _write_date(out, date, field)
    _write_time(out, time, field)


def _within(data: DataInput, read: Any, field: str, low: int, end: int) -> int:
    at = data.position
    value: int = read(field)
    if not low <= value < end:
        data.fail(field, f"{value} is not within {low} to {end - 1}", at)
    return value


def _unpacked(data: DataInput, struct: Struct, null: bytes, field: str) -> tuple[int, ...] | None:
    content = data.raw(struct.size, field)
    return None if content == null else struct.unpack(content)


def _as(out: DataOutput, value: Any, kind: type[tuple[Any, ...]], field: str) -> Any:
    if not isinstance(value, kind):
        raise out.error(field, f"{value!r} is no {kind.__name__}")
    return value


def _pack(out: DataOutput, struct: Struct, values: tuple[Any, ...], field: str) -> None:
    try:
        out.raw(struct.pack(*values))
    except error:
        raise out.error(field, f"{values!r} does not fit") from None


def _hash_of_instant(value: Instant) -> int:
    return assignment.hash_of_long(value.seconds) + 51 * value.nanos


def _hash_of_date(value: LocalDate) -> int:
    return (value.year & 0xFFFFF800) ^ ((value.year << 11) + (value.month << 6) + value.day)


def _hash_of_time(value: LocalTime) -> int:
    seconds = (value.hour * _MINUTES + value.minute) * _SECONDS + value.second
    return assignment.hash_of_long(seconds * _NANOS + value.nanos)


def _hash_of_date_time(value: LocalDateTime) -> int:
    return _hash_of_date(value.date) ^ _hash_of_time(value.time)


def _millis(name: str, class_name: str) -> SimpleSerializer:
    return SimpleSerializer(
        name,
        f"{BASE}.{class_name}Serializer${class_name}SerializerSnapshot",
        _read_millis,
        _write_millis,
        hashes=assignment.hash_of_long,
    )


DATE = _millis("Date", "Date")
SQL_DATE = _millis("sql.Date", "SqlDate")
SQL_TIME = _millis("sql.Time", "SqlTime")
SQL_TIMESTAMP = SimpleSerializer(
    "sql.Timestamp",
    f"{BASE}.SqlTimestampSerializer$SqlTimestampSerializerSnapshot",
    _read_sql_timestamp,
    _write_sql_timestamp,
    hashes=lambda value: assignment.hash_of_long(value.millis),
)
INSTANT = SimpleSerializer(
    "Instant",
    f"{BASE}.InstantSerializer$InstantSerializerSnapshot",
    _read_instant,
    _write_instant,
    hashes=_hash_of_instant,
)
LOCAL_DATE = SimpleSerializer(
    "LocalDate",
    f"{BASE}.LocalDateSerializer$LocalDateSerializerSnapshot",
    _read_date,
    _write_date,
    hashes=_hash_of_date,
)
LOCAL_TIME = SimpleSerializer(
    "LocalTime",
    f"{BASE}.LocalTimeSerializer$LocalTimeSerializerSnapshot",
    _read_time,
    _write_time,
    hashes=_hash_of_time,
)
LOCAL_DATE_TIME = SimpleSerializer(
    "LocalDateTime",
    f"{BASE}.LocalDateTimeSerializer$LocalDateTimeSerializerSnapshot",
    _read_date_time,
    _write_date_time,
    hashes=_hash_of_date_time,
)

SERIALIZERS = (DATE, SQL_DATE, SQL_TIME, SQL_TIMESTAMP, INSTANT, LOCAL_DATE, LOCAL_TIME, LOCAL_DATE_TIME)
