"""The demo's supervisor with random kills: of the driver, of an executor, or of the coordinator's process."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.demo.queries import QUERIES
from benchmarks.demo.supervisor import Kill, QueryState, Supervisor, kill_group
from tests.support.invariants import inspect
from tests.support.processes import BRIDGE, find_below, kill

DRIVER = "driver"
EXECUTOR = "executor"
COORDINATOR = "coordinator"
VICTIMS = (DRIVER, EXECUTOR, COORDINATOR)

LATEST_SECONDS = 3.0
"""A kill falls at most so long after its share of the work is done."""

BURST_SECONDS = 10.0
"""A kill of a burst falls at most so long after the one before, so that it may meet the recovery from that."""

BURSTS = 0.2
"""Share of the kills that do not wait for their share of the work."""


def schedule(kills: int, rng: random.Random) -> list[tuple[str, float, float]]:
    """Who is killed, after which share of the work, and how many seconds after that.

    All victims come equally often; a kill of a burst has the share 0.
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
    """Runs the main job on a cluster, and kills what `rng` says at moments that it says.

    Args:
        master: URL of the cluster.
        executors: the pids of the executors that run now.
        rng: where the schedule comes from.
        starts: how often the driver was started.
        violations: what did not hold of the checkpoint locations after a kill of the driver.
    """

    master: str = ""
    executors: Callable[[], list[int]] = list
    rng: random.Random = field(default_factory=random.Random)
    starts: int = 0
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._schedule: Iterator[tuple[str, float, float]] = iter(schedule(self.kills, self.rng))
        self._next = next(self._schedule, None)
        self._moment: float | None = None

    def command(self) -> list[str]:
        """What starts the driver."""
        return [*super().command(), "--master", self.master]

    def strike(self, driver: subprocess.Popen[bytes], start: int, states: list[QueryState], resumed: bool) -> bool:
        """Kill somebody if it is time, driver or not."""
        self.starts = start
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
        """Note what does not hold of the checkpoint locations; files that crashes left stay till the next claim."""
        for query in QUERIES:
            findings = inspect(self.layout.storage(query.name), orphans=True)
            self.violations += (f"start {self.starts}, {query.name}: {violation}" for violation in findings.violations)

    def _kill(self, victim: str, driver: subprocess.Popen[bytes]) -> bool:
        """Whether there was such a process to kill."""
        if victim == DRIVER:
            kill_group(driver)
            self.inspect()
            return True
        found = self.executors() if victim == EXECUTOR else find_below(driver.pid, BRIDGE)
        if found:
            kill(self.rng.choice(sorted(found)))
        return bool(found)
