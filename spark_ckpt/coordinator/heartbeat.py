"""Signs of life while a request takes longer than a task waits for its answer."""

from __future__ import annotations

from collections.abc import Callable

from spark_ckpt.clock import Clock

_PARTS_OF_TIMEOUT = 5
_MOST_SECONDS = 30.0


class Heartbeat:
    """Signals progress when called: at once, and then several times within the timeout.

    There is none where there is no headway, so a storage that hangs still ends in a timeout.

    Args:
        tell: tells those who wait.
        clock: where time comes from.
        timeout: seconds that a task waits.
    """

    def __init__(self, tell: Callable[[], None], clock: Clock, timeout: float) -> None:
        self._tell = tell
        self._clock = clock
        self._pause = min(timeout / _PARTS_OF_TIMEOUT, _MOST_SECONDS)
        self._next = clock.monotonic()

    def __call__(self) -> None:
        """There is headway."""
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + self._pause
            self._tell()
