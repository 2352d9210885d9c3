"""What can go wrong on the way from a process to what all of them share."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.scheduler import Group, Killed, Scheduler

MOST_SECONDS_WITHOUT_ANSWER = 20.0
"""After which a caller takes it that no answer comes."""


@dataclass(slots=True)
class Faults:
    """How often an operation on the storage fails, and how: chances between 0 and 1.

    Args:
        error: nothing is done, and the caller is told so.
        error_after: it is done, and the caller is told that it failed, or that the outcome is unknown.
        late: it is carried out later, or never, and the caller is told as for `error_after`.
        exists: a create is done, and the caller is told that the file exists: a layer below repeated the request.
        kill: the process dies there, before the operation or after it.
        pause: others act before the operation and after it.
    """

    error: float = 0.0
    error_after: float = 0.0
    late: float = 0.0
    exists: float = 0.0
    kill: float = 0.0
    pause: float = 0.3

    def any(self) -> float:
        return self.error + self.error_after + self.late + self.exists


@dataclass(slots=True)
class Late:
    """Requests on their way that their senders have given up."""

    scheduler: Scheduler
    group: Group = field(default_factory=lambda: Group("network"))
    most_seconds: float = 30.0

    def send(self, seconds: float, request: Callable[[], object]) -> None:
        self.scheduler.spawn("late request", self.group, request, seconds)


@dataclass(slots=True)
class Way:
    """The way of one process to something that all processes share.

    Args:
        group: the process.
        scheduler: for pauses.
        rng: draws the faults.
        faults: how often there are some.
        late: carries out requests later.
        count: is told of each fault.
        kill: kills the process.
    """

    group: Group
    scheduler: Scheduler
    rng: random.Random
    faults: Faults
    late: Late
    count: Callable[[str], None]
    kill: Callable[[Group], None]

    def is_cut(self, operation: str) -> bool:
        """Whether an operation that changes nothing fails."""
        self._pause()
        cut = self.rng.random() < self.faults.error
        if cut:
            self.count(f"{operation}: error")
        return cut

    def carry_out(self, operation: str, body: Callable[[], object]) -> str | None:
        """Carries out a change, or not.

        Returns:
            The fault that the caller meets, or None. A change that is `late` is up to the caller (see `later`).
        """
        self._pause()
        self._maybe_die(f"killed before {operation}")
        drawn, faults = self.rng.random(), self.faults
        if drawn >= faults.any():
            body()
            self._maybe_die(f"killed after {operation}")
            self._pause()
            return None
        if drawn < faults.error:
            fault = "error"
        elif drawn < faults.error + faults.error_after:
            fault = "lost answer"
            body()
        elif drawn < faults.error + faults.error_after + faults.late:
            fault = "late"
        elif operation == "create":
            fault = "exists"
            body()
        else:
            body()
            return None
        self.count(f"{operation}: {fault}")
        self._pause()
        if fault in ("lost answer", "late") and self.rng.random() < 0.2:
            self.scheduler.sleep(self.rng.random() * MOST_SECONDS_WITHOUT_ANSWER)
        return fault

    def later(self, body: Callable[[], object]) -> None:
        """A request arrives some time, or never."""
        if self.rng.random() < 0.8:
            self.late.send(self.rng.random() ** 3 * self.late.most_seconds, body)

    def _pause(self) -> None:
        if not self.group.alive:
            raise Killed
        if self.rng.random() < self.faults.pause:
            self.scheduler.sleep(self.rng.random() ** 2 * 0.2)

    def _maybe_die(self, how: str) -> None:
        if self.faults.kill and self.rng.random() < self.faults.kill:
            self.count(how)
            self.kill(self.group)
