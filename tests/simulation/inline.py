"""A pool without threads, for determinism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class InlinePool:
    """Replacement for `ThreadPoolExecutor`: the caller does all work, one item after the other."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        """Accepts and ignores the arguments of the real pool."""

    def __enter__(self) -> InlinePool:
        return self

    def __exit__(self, *exception: object) -> None:
        """Does nothing: no work is ever pending."""

    def map(self, function: Callable[[T], R], values: Iterable[T]) -> Iterator[R]:
        """The results, in order."""
        return map(function, values)
