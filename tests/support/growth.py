"""How work grows with the number of partitions: steps of Python code, which do not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

FEW, MANY = 24, 96
"""Numbers of partitions to compare."""

MAX_GROWTH = 1.15 * MANY / FEW
"""Steps grow less than the partitions do, since some do not depend on them. A visit of all partitions for each of them
makes this about twice as many: a visit costs ten steps, and handling a partition a thousand."""


@dataclass
class Steps:
    """Number of bytecode instructions of this package in the current thread."""

    count: int = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts what runs meanwhile."""
        before = sys.gettrace()
        # Python 3.12 reports instructions only from the second trace on.
        sys.settrace(_instructions)
        _nothing()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if not str(frame.f_globals.get("__name__", "")).startswith("spark_ckpt."):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            self.count += 1
        return self._step


def _instructions(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
    frame.f_trace_opcodes = True
    return _instructions


def _nothing() -> None:
    """Does nothing."""


def assert_linear(few: Mapping[str, Steps], many: Mapping[str, Steps]) -> None:
    """Asserts that the steps of each phase grow at most as the partitions do, from `FEW` to `MANY`."""
    assert few.keys() == many.keys()
    growth = {phase: many[phase].count / few[phase].count for phase in few}
    assert all(factor <= MAX_GROWTH for factor in growth.values()), growth
