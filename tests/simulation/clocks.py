"""A machine's clock, which may show a wrong time but measures durations correctly."""

from __future__ import annotations

import random

from tests.simulation.scheduler import START_MS, Scheduler

DAY_MS = 24 * 3600 * 1000


class MachineClock:
    """A clock that can jump or stop.

    Args:
        scheduler: source of the true time.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._ahead_ms = 0
        self._stopped_at: int | None = None

    def now_ms(self) -> int:
        """The time shown by the clock, in milliseconds."""
        return self._scheduler.now_ms() + self._ahead_ms if self._stopped_at is None else self._stopped_at

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._scheduler.monotonic()

    def sleep(self, seconds: float) -> None:
        """Lets time pass."""
        self._scheduler.sleep(seconds)

    def go_wrong(self, rng: random.Random) -> str:
        """Makes the clock jump by days or to 1970, or stops it; the next call may set it right again.

        Returns:
            A description of the change.
        """
        what = rng.choice(("forward", "back", "1970", "still", "right"))
        self._stopped_at, self._ahead_ms = None, 0
        if what == "forward":
            self._ahead_ms = int(rng.uniform(0.1, 30) * DAY_MS)
        elif what == "back":
            self._ahead_ms = -int(rng.uniform(0.1, 30) * DAY_MS)
        elif what == "1970":
            self._ahead_ms = -START_MS
        elif what == "still":
            self._stopped_at = self._scheduler.now_ms()
        return what
