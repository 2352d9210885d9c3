"""Kinds of setting values: parsers of their text that reject values out of range."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from spark_ckpt.config import units
from spark_ckpt.config.keys import PREFIX
from spark_ckpt.errors import SettingError

T = TypeVar("T")

MAX_DURATION_SECONDS = 365 * 86_400.0
"""Longest duration of a setting."""

_SERVER = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class Setting(Generic[T]):
    """One setting.

    Args:
        suffix: its key without `PREFIX`.
        kind: kind of its values, as text.
        default: its default; None if that depends on the query.
        doc: its description, with units.
        parse: converts text to a value; raises `ValueError` with the allowed values.
    """

    suffix: str
    kind: str
    default: T | None
    doc: str
    parse: Callable[[str], T]

    @property
    def key(self) -> str:
        """The full key."""
        return PREFIX + self.suffix

    def value(self, settings: Mapping[str, str]) -> T | None:
        """The value in `settings`, or the default.

        Raises:
            SettingError: the text is not a value of this setting.
        """
        text = settings.get(self.key)
        if text is None:
            return self.default
        try:
            return self.parse(text.strip())
        except ValueError as e:
            raise SettingError(self.key, str(e)) from None


def whole(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """A count within bounds."""
    return _bounded(units.count, units.COUNT_FORM, minimum, maximum, "")


def size(minimum: int, maximum: int) -> Callable[[str], int]:
    """A number of bytes within bounds."""
    return _bounded(units.size, units.SIZE_FORM, minimum, maximum, " bytes")


def size_or_share(maximum: int, max_percent: int, none: str) -> Callable[[str], str]:
    """A number of bytes above 0, a share from 1 % to a limit, or the name of no limit: the text without units."""
    bytes_of = size(1, maximum)

    def parse(text: str) -> str:
        if text.lower() == none:
            return none
        if not text.endswith("%"):
            try:
                return str(bytes_of(text))
            except ValueError as e:
                raise ValueError(f"{e}; or {units.SHARE_FORM}; or {none}") from None
        percent = units.share(text)
        if not 1 <= percent <= max_percent:
            raise ValueError(f"'{text}' is out of range: must be from 1% to {max_percent}%, or a size, or {none}")
        return f"{percent}%"

    return parse


def _bounded(
    parse: Callable[[str], int], form: str, minimum: int, maximum: int | None, unit: str
) -> Callable[[str], int]:
    allowed = f"from {minimum} to {maximum}{unit}" if maximum is not None else f"of {minimum}{unit} or more"

    def bounded(text: str) -> int:
        try:
            value = parse(text)
        except ValueError:
            raise ValueError(f"'{text}' is not {form}, {allowed}") from None
        if value < minimum or (maximum is not None and value > maximum):
            raise ValueError(f"'{text}' is out of range: must be {form}, {allowed}")
        return value

    return bounded


def seconds(text: str) -> float:
    """A duration of at least a millisecond, as seconds."""
    value = units.milliseconds(text) / 1000
    if not 0 < value <= MAX_DURATION_SECONDS:
        raise ValueError(f"'{text}' is out of range: must be {units.DURATION_FORM}, from 1ms to 365d")
    return value


def at_least(minimum: float) -> Callable[[str], float]:
    """A duration of at least this many seconds, as seconds."""

    def parse(text: str) -> float:
        value = units.milliseconds(text) / 1000
        if not minimum <= value <= MAX_DURATION_SECONDS:
            raise ValueError(f"'{text}' is out of range: must be {units.DURATION_FORM}, from {minimum:g}s to 365d")
        return value

    return parse


def positive(text: str) -> float:
    """A number above 0, without a unit."""
    try:
        value = float(text) if re.fullmatch(r"[0-9.]+", text, re.ASCII) else math.nan
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"'{text}' is not a number above 0")
    return value


def one_of(*allowed: str) -> Callable[[str], str]:
    """One of several names, case-insensitive."""
    names = {name.lower(): name for name in allowed}

    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"'{text}' is not one of: {', '.join(allowed)}")
        return names[text.lower()]

    return parse


def some_text(text: str) -> str:
    """Any text but an empty one."""
    if not text:
        raise ValueError("the value is empty; remove the setting to use its default")
    return text


def absolute(text: str) -> str:
    """An absolute path without a slash at its end."""
    if not text.startswith("/") or "//" in text or text.endswith("/"):
        raise ValueError(f"'{text}' is not an absolute path such as /spark-ckpt")
    return text


def servers(text: str) -> str:
    """Servers as `host:port` or `host`, separated by commas."""
    for server in some_text(text).split(","):
        match = _SERVER.fullmatch(server.strip())
        if match is None or (match[1] is not None and not 0 < int(match[1]) < 1 << 16):
            raise ValueError(f"'{server.strip()}' is not a server such as zk-1:2181; servers are separated by commas")
    return text
