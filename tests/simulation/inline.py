"""A pool without threads: what is deterministic has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class InlinePool:
    """In place of a `ThreadPoolExecutor`: the caller does it all, one after the other."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        """Takes what the real one takes."""

    def __enter__(self) -> InlinePool:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is under way."""

    def map(self, function: Callable[[T], R], values: Iterable[T]) -> Iterator[R]:
        """The results, in order."""
        return map(function, values)
