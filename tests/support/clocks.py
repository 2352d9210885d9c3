"""Clocks for tests."""

from __future__ import annotations


class NoClock:
    """A clock whose sleep returns at once."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.now = 1_000_000

    def now_ms(self) -> int:
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
