"""Starts the driver, kills it in the middle of batches, and starts it again until the feed is read to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Protocol

from benchmarks.demo.layout import Batches, Layout, files_done, read_batches
from benchmarks.demo.queries import QUERIES
from benchmarks.demo.session import REPOSITORY
from spark_ckpt.spark_files.logs import SparkLog

POLL_SECONDS = 0.05
REMOTE_POLL_SECONDS = 0.5
"""Each look at logs in an object store is three requests for a query."""

DEADLINE_SECONDS = 1200.0

# How long a batch has been running when the blow falls, so that different kills meet a batch at different work.
KILL_DELAYS = (0.3, 1.0, 0.6)


class DriverFailedError(Exception):
    """The driver ended by itself and not well."""

    def __init__(self, log: Path, tail: str) -> None:
        self.log = log
        super().__init__(f"the driver failed; the end of {log}:\n{tail}")


@dataclass(frozen=True)
class QueryState:
    """How far a query is."""

    name: str
    batches: Batches
    files: int


@dataclass(frozen=True)
class Kill:
    """One kill, with what was running when it fell: batch by query, from Spark's logs after the victim was dead."""

    start: int
    interrupted: dict[str, int]
    victim: str = "driver"


class Audience(Protocol):
    """Who is told what happens."""

    def started(self, start: int) -> None:
        """A driver has been started."""

    def progressed(self, states: list[QueryState]) -> None:
        """The state of all queries, several times a second."""

    def resumed(self, start: int, seconds: float) -> None:
        """A restarted driver has committed its first batch, so long after its start."""

    def killed(self, kill: Kill) -> None:
        """The driver, or another process of the job, has been killed."""


@dataclass
class Supervisor:
    """Runs one demo. Each kill aims at another query, at equal distances on the way through the feed."""

    layout: Layout
    provider: str
    files: int
    kills: int
    audience: Audience
    done: list[Kill] = field(default_factory=list)

    @cached_property
    def _logs(self) -> dict[str, SparkLog]:
        """Spark's logs by query, opened once: a client of S3 takes longer to make than to use."""
        return {query.name: SparkLog(self.layout.storage(query.name)) for query in QUERIES}

    def run(self) -> list[Kill]:
        """Run to the end of the feed; return the kills that met a batch."""
        start = 0
        while True:
            start += 1
            self.audience.started(start)
            if self._run_driver(start):
                return self.done

    def _run_driver(self, start: int) -> bool:
        """One life of the driver. Whether it got to the end."""
        log = self.layout.driver_log(start)
        before = self._committed()
        with log.open("wb") as output, self._driver(output) as driver:
            began = time.monotonic()
            resumed = start == 1
            try:
                for states in self._watch(driver, began):
                    self.audience.progressed(states)
                    if not resumed and sum(state.batches.committed for state in states) > before:
                        resumed = True
                        self.audience.resumed(start, time.monotonic() - began)
                    if self.strike(driver, start, states, resumed):
                        return False
            finally:
                kill_group(driver)
        self.audience.progressed(self._states())
        if driver.returncode != 0:
            raise DriverFailedError(log, "\n".join(log.read_text(errors="replace").splitlines()[-40:]))
        return True

    def strike(self, driver: subprocess.Popen[bytes], start: int, states: list[QueryState], resumed: bool) -> bool:
        """Kill the driver if it is time. Whether it has been killed."""
        if not resumed or not self._is_time_to_kill(states):
            return False
        kill_group(driver)
        interrupted = self.interrupted()
        if interrupted:  # it counts as a kill only if Spark's logs say that it met a batch
            self.note(Kill(start, interrupted))
        return True

    def note(self, kill: Kill) -> None:
        """Count a kill."""
        self.done.append(kill)
        self.audience.killed(kill)

    def interrupted(self) -> dict[str, int]:
        """The batch that each query has planned and not committed, as Spark's logs have it now."""
        return {state.name: state.batches.planned for state in self._states() if state.batches.running}

    def command(self) -> list[str]:
        """What starts the driver."""
        command = [sys.executable, "-m", "benchmarks.demo.driver", "--work", str(self.layout.work)]
        command += ["--provider", self.provider]
        if self.layout.elsewhere is not None:
            command += ["--checkpoints", self.layout.elsewhere]
        return [*command, *(part for key, value in self.layout.conf.items() for part in ("--conf", f"{key}={value}"))]

    def _driver(self, output: IO[bytes]) -> subprocess.Popen[bytes]:
        # A process group of its own: the signal takes Python, JVM and side process at once, as a lost machine would.
        return subprocess.Popen(
            self.command(),
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )

    def _watch(self, driver: subprocess.Popen[bytes], began: float) -> Iterator[list[QueryState]]:
        pause = POLL_SECONDS if self.layout.elsewhere is None else REMOTE_POLL_SECONDS
        while driver.poll() is None:
            if time.monotonic() - began > DEADLINE_SECONDS:
                raise SystemExit(f"the driver has not ended after {DEADLINE_SECONDS:.0f} s")
            yield self._states()
            time.sleep(pause)

    def _states(self) -> list[QueryState]:
        states = []
        for name, log in self._logs.items():
            batches = read_batches(log)
            states.append(QueryState(name, batches, files_done(log, batches.committed)))
        return states

    def _committed(self) -> int:
        return sum(state.batches.committed for state in self._states())

    def _is_time_to_kill(self, states: list[QueryState]) -> bool:
        """Whether the next kill's query is far enough, and still in the same batch after a moment."""
        if len(self.done) >= self.kills:
            return False
        target = states[len(self.done) % len(states)]
        due = (len(self.done) + 1) * self.files // (self.kills + 1)
        if target.files < due or not target.batches.running:
            return False
        time.sleep(KILL_DELAYS[len(self.done) % len(KILL_DELAYS)])
        return read_batches(self._logs[target.name]) == target.batches


def kill_group(driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver with all its processes, and wait until the last of them is gone."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    while _is_alive(driver.pid):
        time.sleep(POLL_SECONDS)


def _is_alive(group: int) -> bool:
    """Whether a process of the group runs. A dead one that nobody has waited for (state Z) does not."""
    ps = subprocess.run(["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True)
    members = (line.split() for line in ps.stdout.splitlines())
    return any(int(pgid) == group and not state.startswith("Z") for pgid, state in members)
