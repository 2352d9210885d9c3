"""Times beyond the years that Arrow can print, as text.

Arrow keeps the year in 16 bits: for later years, the text of its casts has the year modulo 65,536, or is no time.
Spark's timestamps reach the year 294,247, and its dates the year 5,881,580.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_MAX_DAYS = 10_000_000
"""Days before or after 1970 that Arrow prints: 27,379 years."""

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS_OF_DAY = 86_400
_DAYS_OF_ERA, _YEARS_OF_ERA = 146_097, 400


def has_far_times(columns: list[pa.Array]) -> bool:
    """True if a date or timestamp in these columns, or below them, is too far for Arrow."""
    return any(_is_far(values) for column in columns for values in _leaves(column))


def time_text(value: int, kind: pa.DataType) -> str:
    """A date or timestamp as Arrow prints it, for any year. Years before 1 have a minus sign.

    Args:
        value: the number behind it: days, or units since 1970.
        kind: its type.
    """
    if pa.types.is_date32(kind):
        return _date(value)
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    per_second = _PER_SECOND[unit]
    seconds, fraction = divmod(value, per_second)
    days, second = divmod(seconds, _SECONDS_OF_DAY)
    if pa.types.is_date64(kind):
        return _date(days)
    text = f"{_date(days)} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    digits = len(str(per_second)) - 1
    text += f".{fraction:0{digits}}" if digits else ""
    return text if kind.tz is None else f"{text}Z"


def is_time(kind: pa.DataType) -> bool:
    """True for a date or timestamp."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def number_of(kind: pa.DataType) -> pa.DataType:
    """Type of the number behind a date or timestamp."""
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    kind = values.type
    if pa.types.is_struct(kind):
        for part in values.flatten():
            yield from _leaves(part)
    elif pa.types.is_map(kind):
        yield from _leaves(values.keys)
        yield from _leaves(values.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(values.flatten())
    elif is_time(kind):
        yield values


def _is_far(values: pa.Array) -> bool:
    kind = values.type
    per_day = 1 if pa.types.is_date32(kind) else _SECONDS_OF_DAY * _PER_SECOND[getattr(kind, "unit", "ms")]
    ends = pc.min_max(values.view(number_of(kind)))
    minimum, maximum = ends["min"].as_py(), ends["max"].as_py()
    return minimum is not None and max(-minimum, maximum) > _MAX_DAYS * per_day


def _date(days: int) -> str:
    """A day since 1970 in the proleptic Gregorian calendar, whose years are counted from March."""
    era, day = divmod(days + 719_468, _DAYS_OF_ERA)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day_of_month = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    year += era * _YEARS_OF_ERA + (month <= 2)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day_of_month:02}"
