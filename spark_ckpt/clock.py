"""Time, as the coordinator sees it; a simulation puts its own in place."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00 UTC."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleeps."""
        time.sleep(seconds)
