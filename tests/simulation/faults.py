"""Faults between a process and the services shared by all processes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.scheduler import Group, Killed, Scheduler

MAX_SECONDS_WITHOUT_ANSWER = 20.0
"""Time after which a caller stops waiting for an answer."""


MAX_STALL = 20.0
"""Maximum number of seconds for which a process stands still before a change."""


@dataclass(slots=True)
class Faults:
    """Probabilities of the faults of a storage operation, each between 0 and 1.

    Args:
        error: the operation is not carried out, and the caller gets an error.
        error_after: it is carried out, but the caller gets an error or an unknown outcome.
        late: it is carried out later, or never; the caller's answer is as for `error_after`.
        exists: a create succeeds, but reports that the file exists: a layer below repeated the request.
        kill: the process dies before or after the operation.
        pause: other actors run before and after the operation; without pauses, messages take no time, either.
        stall: the process stands still before a change, for seconds: as long as a rollback takes.
    """

    error: float = 0.0
    error_after: float = 0.0
    late: float = 0.0
    exists: float = 0.0
    kill: float = 0.0
    pause: float = 0.3
    stall: float = 0.0

    def any(self) -> float:
        return self.error + self.error_after + self.late + self.exists


@dataclass(slots=True)
class Late:
    """Requests still on their way, although their senders have given them up."""

    scheduler: Scheduler
    group: Group = field(default_factory=lambda: Group("network"))
    most_seconds: float = 30.0

    def send(self, seconds: float, request: Callable[[], object]) -> None:
        self.scheduler.spawn("late request", self.group, request, seconds)


@dataclass(slots=True)
class Way:
    """One process's way to a shared service.

    Args:
        group: the process.
        scheduler: for pauses.
        rng: draws the faults.
        faults: probabilities of the faults.
        late: carries out requests later.
        count: called with each fault.
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
        """True if an operation that changes nothing fails."""
        self._pause()
        cut = self.rng.random() < self.faults.error
        if cut:
            self.count(f"{operation}: error")
        return cut

    def carry_out(self, operation: str, body: Callable[[], object]) -> str | None:
        """Carries out a change, or makes it fail.

        Returns:
            The fault seen by the caller, or None. A `late` change is left to the caller (see `later`).
        """
        self._pause()
        self._maybe_stall(operation)
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
            self.scheduler.sleep(self.rng.random() * MAX_SECONDS_WITHOUT_ANSWER)
        return fault

    def later(self, body: Callable[[], object]) -> None:
        """Delivers a request at a later time, or never."""
        if self.rng.random() < 0.8:
            self.late.send(self.rng.random() ** 3 * self.late.most_seconds, body)

    def _pause(self) -> None:
        if not self.group.alive:
            raise Killed
        if self.rng.random() < self.faults.pause:
            self._pause_now()

    def _maybe_stall(self, operation: str) -> None:
        if self.faults.stall and self.rng.random() < self.faults.stall:
            self.count(f"stalled before {operation}")
            self.group.frozen_until = max(self.group.frozen_until, self.scheduler.now + self.rng.random() * MAX_STALL)
            self._pause_now()

    def _pause_now(self) -> None:
        self.scheduler.sleep(self.rng.random() ** 2 * 0.2)

    def _maybe_die(self, how: str) -> None:
        if self.faults.kill and self.rng.random() < self.faults.kill:
            self.count(how)
            self.kill(self.group)
