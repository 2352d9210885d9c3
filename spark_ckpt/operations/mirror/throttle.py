"""A bound of the rate of copies."""

from __future__ import annotations

from spark_ckpt.clock import Clock


class Throttle:
    """Pauses after each file for as long as it should have taken.

    Args:
        bytes_per_second: average rate; None for no bound.
        clock: clock that pauses.
    """

    def __init__(self, bytes_per_second: int | None, clock: Clock) -> None:
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._free_at = clock.monotonic()

    def took(self, size: int) -> None:
        """Notes a copied file of so many bytes, and waits until the next one may begin."""
        if self._bytes_per_second is None:
            return
        now = self._clock.monotonic()
        # Idle time earns credit for one second at most.
        self._free_at = max(self._free_at, now - 1.0) + size / self._bytes_per_second
        if self._free_at > now:
            self._clock.sleep(self._free_at - now)
