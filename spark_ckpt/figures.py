"""Numbers, sizes and times as text for people."""

from __future__ import annotations

from datetime import datetime, timezone

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
_ROUNDED = 2
"""Below this many of a unit, a duration also has the next smaller unit: `1 h 20 min`, but `5 h`."""


def human_size(size: int) -> str:
    """A number of bytes with a unit; `unknown size` for -1."""
    if size < 0:
        return "unknown size"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{size:,} bytes" if unit == 0 else f"{amount:,.1f} {_UNITS[unit]}"


def iso_time(timestamp_ms: int) -> str:
    """A time in UTC as ISO 8601, with milliseconds."""
    time = datetime.fromtimestamp(timestamp_ms / 1000, timezone.utc)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_ms(time: datetime) -> int:
    """A time in milliseconds since 1970 UTC. A time without a time zone is in UTC."""
    moment = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
    return int(moment.timestamp() * 1000)


def parse_time(text: str) -> datetime:
    """A time in ISO 8601, which may end with `Z`.

    Raises:
        ValueError: it is none.
    """
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)  # before Python 3.11, no Z


def count(number: int, noun: str) -> str:
    """A number with a noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def human_duration(duration_ms: int) -> str:
    """A duration with a unit: `35 ms`, `12 s`, `1 min 5 s`, `3 d`.

    Args:
        duration_ms: milliseconds; a negative duration counts as 0.
    """
    left = max(0, duration_ms)
    for i, (unit_ms, unit) in enumerate(_TIMES):
        amount, rest = divmod(left, unit_ms)
        if not amount and unit_ms > 1:
            continue
        smaller_ms, smaller = _TIMES[i + 1] if i + 1 < len(_TIMES) else (0, "")
        if amount < _ROUNDED and smaller_ms and rest >= smaller_ms:
            return f"{amount:,} {unit} {rest // smaller_ms:,} {smaller}"
        return f"{amount:,} {unit}"
    raise AssertionError("each duration has a unit")
