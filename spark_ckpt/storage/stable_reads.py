"""Consistent reads of files that change concurrently."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from spark_ckpt.errors import StorageError

MAX_READINGS = 20
"""Reads, each invalidated by a concurrent change, after which an operation fails."""

_T = TypeVar("_T")


def until_stable(read: Callable[[], _T | None], path: str) -> _T:
    """Repeats a read until nothing changes while it runs.

    Args:
        read: a single read; returns None if it detects a change, for example if two listings differ.
        path: path or URL for the error.

    Raises:
        StorageError: something changed during each of `MAX_READINGS` reads.
    """
    for _ in range(MAX_READINGS):
        if (result := read()) is not None:
            return result
    raise StorageError(path, "read", f"it changed during each of {MAX_READINGS} reads")
