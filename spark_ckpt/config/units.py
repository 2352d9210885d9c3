"""Durations, sizes, counts and shares as text: one grammar for all settings, here and in the jar's `Units.scala`.

    duration = number [ "ms" | "s" | "m" | "min" | "h" | "d" ]     seconds without a unit
    size     = digits [ "b" | ( "k" | "m" | "g" ) [ "b" | "ib" ] ]  bytes; k, m and g are powers of 1,024, as in Spark
    count    = digits [ "k" | "m" ]                                 k and m are 1,000 and 1,000,000
    share    = digits "%"
    number   = digits [ "." digits ]
    digits   = 1 to 18 of 0-9

Case and surrounding white space are ignored. Signs, exponents and inner white space are invalid. The tests of both
sides share the examples in `jvm-shim/shim/src/test/resources/setting-values.tsv`.
"""

from __future__ import annotations

import re
from decimal import Decimal

_DIGITS = "[0-9]{1,18}"
_DURATION = re.compile(rf"({_DIGITS}(?:\.{_DIGITS})?)(ms|s|m|min|h|d)?", re.IGNORECASE | re.ASCII)
_SIZE = re.compile(rf"({_DIGITS})(b|(?:[kmg])(?:i?b)?)?", re.IGNORECASE | re.ASCII)
_SHARE = re.compile(rf"({_DIGITS})(%)", re.ASCII)
_COUNT = re.compile(rf"({_DIGITS})([km])?", re.IGNORECASE | re.ASCII)

_MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_POWERS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_THOUSANDS = {"k": 1_000, "m": 1_000_000}

DURATION_FORM = "a duration such as 300, 300s, 250ms, 5m, 1.5h or 2d"
"""Form of a duration, for messages."""

SIZE_FORM = "a number of bytes such as 1048576, 64k, 1m or 1MiB"
"""Form of a size, for messages."""

SHARE_FORM = "a share such as 40%"
"""Form of a share, for messages."""

COUNT_FORM = "a whole number such as 5 or 20k"
"""Form of a count, for messages."""


def milliseconds(text: str) -> int:
    """A duration in milliseconds, rounded down.

    Raises:
        ValueError: the text is not a duration.
    """
    number, unit = _parts(_DURATION, text, DURATION_FORM)
    return int(Decimal(number) * _MILLISECONDS[(unit or "s").lower()])


def size(text: str) -> int:
    """A number of bytes.

    Raises:
        ValueError: the text is not a size.
    """
    number, unit = _parts(_SIZE, text, SIZE_FORM)
    return int(number) * _POWERS[(unit or "b")[0].lower()]


def share(text: str) -> int:
    """A share in percent.

    Raises:
        ValueError: the text is not a share.
    """
    return int(_parts(_SHARE, text, SHARE_FORM)[0])


def count(text: str) -> int:
    """A whole number.

    Raises:
        ValueError: the text is not a count.
    """
    number, unit = _parts(_COUNT, text, COUNT_FORM)
    return int(number) * (_THOUSANDS[unit.lower()] if unit else 1)


def _parts(pattern: re.Pattern[str], text: str, form: str) -> tuple[str, str | None]:
    """The number and the unit of a text."""
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not {form}")
    return match[1], match[2]


def plain_number(value: float) -> str:
    """The text of a number without an exponent, as the grammar above requires."""
    decimal = Decimal(repr(value)) if isinstance(value, float) else Decimal(int(value))
    return format(decimal, "f") if decimal.is_finite() else str(value)
