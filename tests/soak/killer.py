"""The demo's supervisor with random kills of the driver, an executor, or the coordinator, which may also hang."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.demo.queries import QUERIES
from benchmarks.demo.supervisor import Kill, QueryState, Supervisor, kill_group
from tests.support.invariants import inspect
from tests.support.processes import BRIDGE, find_below, hang, kill

DRIVER = "driver"
EXECUTOR = "executor"
COORDINATOR = "coordinator"
VICTIMS = (DRIVER, EXECUTOR, COORDINATOR)

LATEST_SECONDS = 3.0
"""Longest delay of a kill after its share of the work is done, in seconds."""

BURST_SECONDS = 10.0
"""Longest delay of a burst's kill after the previous one, in seconds; it may interrupt the recovery from that."""

BURSTS = 0.2
"""Share of the kills that follow the previous one without waiting for their share of the work."""


HANGS = 0.5
"""Share of the strikes at a coordinator that let it hang instead of killing it."""


def schedule(kills: int, rng: random.Random) -> list[tuple[str, float, float]]:
    """Victim, share of the work before the kill, and delay in seconds after that, of each kill.

    All victims are equally frequent; a kill in a burst has the share 0.
    """
    victims = [VICTIMS[number % len(VICTIMS)] for number in range(kills)]
    rng.shuffle(victims)
    plan = []
    for number, victim in enumerate(victims):
        burst = number > 0 and rng.random() < BURSTS
        share = 0.0 if burst else (number + 1) / (kills + 1)
        plan.append((victim, share, rng.uniform(0, BURST_SECONDS if burst else LATEST_SECONDS)))
    return plan


@dataclass
class Killer(Supervisor):
    """Runs the main job on a cluster, with kills chosen and timed by `rng`.

    Args:
        master: URL of the cluster.
        executors: returns the pids of the running executors.
        rng: source of the schedule.
        violations: violations found in the checkpoint locations after a kill of the driver.
    """

    master: str = ""
    executors: Callable[[], list[int]] = list
    rng: random.Random = field(default_factory=random.Random)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._schedule: Iterator[tuple[str, float, float]] = iter(schedule(self.kills, self.rng))
        self._next = next(self._schedule, None)
        self._moment: float | None = None

    def command(self) -> list[str]:
        """Command that starts the driver."""
        return [*super().command(), "--master", self.master]

    def strike(self, driver: subprocess.Popen[bytes], start: int, states: list[QueryState], resumed: bool) -> bool:
        """Kills the next victim if it is due; true if that was the driver."""
        if self._next is None:
            return False
        victim, share, seconds = self._next
        now = time.monotonic()
        if self._moment is None and sum(state.files for state in states) >= share * self.files * len(states):
            self._moment = now + seconds
        if self._moment is None or now < self._moment or not self._kill(victim, driver):
            return False
        self.note(Kill(start, self.interrupted(), victim))
        self._next, self._moment = next(self._schedule, None), None
        return victim == DRIVER

    def inspect(self) -> None:
        """Records violations in the checkpoint locations; unreferenced files from crashes stay until the next claim."""
        for query in QUERIES:
            findings = inspect(self.layout.storage(query.name), orphans=True)
            self.violations += (f"start {self.starts}, {query.name}: {violation}" for violation in findings.violations)

    def _kill(self, victim: str, driver: subprocess.Popen[bytes]) -> bool:
        """Kills the victim; false if no such process was found."""
        if victim == DRIVER:
            kill_group(driver)
            self.inspect()
            return True
        found = self.executors() if victim == EXECUTOR else find_below(driver.pid, BRIDGE)
        if found:
            hangs = victim == COORDINATOR and self.rng.random() < HANGS
            (hang if hangs else kill)(self.rng.choice(sorted(found)))
        return bool(found)
