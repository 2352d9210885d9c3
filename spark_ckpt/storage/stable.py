"""Reading of files that come and go meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from spark_ckpt.errors import StorageError

MOST_READINGS = 20
"""Readings, each disturbed by a change, after which an operation fails."""

_T = TypeVar("_T")


def until_stable(read: Callable[[], _T | None], place: str) -> _T:
    """Repeats a reading until nothing has changed in the course of it.

    Args:
        read: one reading; returns None if something has changed, for example if two listings differ.
        place: path or URL, for the error.

    Raises:
        StorageError: something changed during each of `MOST_READINGS` readings.
    """
    for _ in range(MOST_READINGS):
        if (found := read()) is not None:
            return found
    raise StorageError(place, "read", f"it changed during each of {MOST_READINGS} readings")
