"""Heartbeats during requests that exceed the timeout of the waiting task."""

from __future__ import annotations

from collections.abc import Callable

from spark_ckpt.clock import Clock

_PARTS_OF_TIMEOUT = 5
_MAX_SECONDS = 30.0


class Heartbeat:
    """Signal of progress: sent on the first call, then several times within the timeout.

    Calls follow progress only, so a storage that hangs still leads to a timeout.

    Args:
        tell: notifies the waiting tasks.
        clock: time source.
        timeout: seconds that a task waits.
    """

    def __init__(self, tell: Callable[[], None], clock: Clock, timeout: float) -> None:
        self._tell = tell
        self._clock = clock
        self._pause = min(timeout / _PARTS_OF_TIMEOUT, _MAX_SECONDS)
        self._next = clock.monotonic()

    def __call__(self) -> None:
        """Report progress."""
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + self._pause
            self._tell()
