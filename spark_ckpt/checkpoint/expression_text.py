"""Texts of Spark's expressions for people."""

from __future__ import annotations

import re

from spark_ckpt.figures import human_duration

_TIME = "precisetimestampconversion("
_COLUMN = re.compile(r"precisetimestampconversion\(([^(),]+), Timestamp\w*, LongType\)")
_SLIDE = re.compile(r"% (\d+)\)")
_LENGTH = re.compile(r"\) \+ (\d+)\), LongType")
_START = re.compile(r"LongType\) - (\d+)\) %")
_US_PER_MS = 1000


def is_window(text: str) -> bool:
    """True for the expression of a time window (Spark: `TimeWindowResolution`)."""
    return _TIME in text and _SLIDE.search(text) is not None


def worded(text: str) -> str:
    """An expression as a person would write it: that of a time window takes a thousand characters in Spark's plan."""
    if not is_window(text):
        return text
    column, slide, length = _COLUMN.search(text), _SLIDE.search(text), _LENGTH.search(text)
    if column is None or slide is None or length is None:
        return "a time window"
    words = [column[1], f"{_duration(length)} long"]
    if slide[1] != length[1]:
        words.append(f"every {_duration(slide)}")
    if (start := _START.search(text)) is not None and start[1] != "0":
        words.append(f"from {_duration(start)} on")
    return f"window({', '.join(words)})"


def _duration(us: re.Match[str]) -> str:
    return human_duration(int(us[1]) // _US_PER_MS)
