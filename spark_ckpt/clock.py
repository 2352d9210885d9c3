"""Clock of the coordinator; simulations substitute their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00 UTC."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes backwards."""

    def sleep(self, seconds: float) -> None:
        """Waits for the given time."""


class SystemClock:
    """System clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 00:00 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since an arbitrary point; never goes backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Blocks the calling thread for the given time."""
        time.sleep(seconds)
