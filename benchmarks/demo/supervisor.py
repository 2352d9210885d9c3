"""Starts the driver, kills it in the middle of batches, and restarts it until the feed is exhausted."""

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
"""Longer than for local logs: one look at logs in an object store takes three requests per query."""

DEADLINE_SECONDS = 1200.0

# Delay of each kill within a batch, varied so that different kills interrupt different work.
KILL_DELAYS = (0.3, 1.0, 0.6)


class DriverFailedError(Exception):
    """The driver ended by itself with an error."""

    def __init__(self, log: Path, tail: str) -> None:
        self.log = log
        super().__init__(f"the driver failed; the end of {log}:\n{tail}")


@dataclass(frozen=True)
class QueryState:
    """Progress of a query."""

    name: str
    batches: Batches
    files: int


@dataclass(frozen=True)
class Kill:
    """A kill and the batches it interrupted, by query, as read from Spark's logs after the victim's death."""

    start: int
    interrupted: dict[str, int]
    victim: str = "driver"


class Audience(Protocol):
    """Receiver of the supervisor's events."""

    def started(self, start: int) -> None:
        """A driver has been started."""

    def progressed(self, states: list[QueryState]) -> None:
        """State of all queries, reported several times a second."""

    def resumed(self, start: int, seconds: float) -> None:
        """A restarted driver has committed its first batch, `seconds` after its start."""

    def serves(self, address: str) -> None:
        """A driver serves Spark's UI at this address."""

    def killed(self, kill: Kill) -> None:
        """The driver, or another process of the job, has been killed."""


@dataclass
class Supervisor:
    """Runs one demo. Kills target the queries in turn, at equal intervals over the feed."""

    layout: Layout
    provider: str
    files: int
    kills: int
    audience: Audience
    ui: bool = False
    """True if drivers serve Spark's UI."""
    done: list[Kill] = field(default_factory=list)
    starts: int = 0

    @cached_property
    def _logs(self) -> dict[str, SparkLog]:
        """Spark's logs by query, opened once: creating an S3 client takes longer than using it."""
        return {query.name: SparkLog(self.layout.storage(query.name)) for query in QUERIES}

    def run(self) -> list[Kill]:
        """Run to the end of the feed; return the kills that interrupted a batch."""
        while True:
            self.starts += 1
            self.audience.started(self.starts)
            if self._run_driver(self.starts):
                return self.done

    def _run_driver(self, start: int) -> bool:
        """Run one driver; return true if it reached the end of the feed."""
        log = self.layout.driver_log(start)
        before = self._committed()
        self.layout.ui.unlink(missing_ok=True)
        with log.open("wb") as output, self._driver(output) as driver:
            began = time.monotonic()
            resumed, serves = start == 1, False
            try:
                for states in self._watch(driver, began):
                    self.audience.progressed(states)
                    if not serves and self.layout.ui.exists():
                        serves = True
                        self.audience.serves(self.layout.ui.read_text(encoding="utf-8"))
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
        """Kill the driver if a kill is due; return true if it was killed."""
        if not resumed or not self._is_time_to_kill(states):
            return False
        kill_group(driver)
        interrupted = self.interrupted()
        if interrupted:  # a kill counts only if Spark's logs show that it interrupted a batch
            self.note(Kill(start, interrupted))
        return True

    def note(self, kill: Kill) -> None:
        """Record a kill."""
        self.done.append(kill)
        self.audience.killed(kill)

    def interrupted(self) -> dict[str, int]:
        """Planned but uncommitted batch of each query, according to Spark's logs."""
        return {state.name: state.batches.planned for state in self._states() if state.batches.running}

    def command(self) -> list[str]:
        """Command that starts the driver."""
        command = [sys.executable, "-m", "benchmarks.demo.driver", "--work", str(self.layout.work)]
        command += ["--provider", self.provider]
        if self.layout.elsewhere is not None:
            command += ["--checkpoints", self.layout.elsewhere]
        if self.ui:
            command.append("--ui")
        if self.layout.topics is not None:
            command += ["--kafka", self.layout.topics.servers]
        if self.layout.stage is not None:
            command += ["--stage", str(self.layout.stage)]
        if self.layout.moved is not None:
            command += ["--moved", str(self.layout.moved)]
        return [*command, *(part for key, value in self.layout.conf.items() for part in ("--conf", f"{key}={value}"))]

    def _driver(self, output: IO[bytes]) -> subprocess.Popen[bytes]:
        # A process group of its own: the signal hits Python, JVM and side process at once, like the loss of a machine.
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
        rows = () if self.layout.topics is None else self.layout.topics.rows
        for name, log in self._logs.items():
            batches = read_batches(log)
            states.append(QueryState(name, batches, files_done(log, batches.committed, rows, self.layout.moved)))
        return states

    def _committed(self) -> int:
        return sum(state.batches.committed for state in self._states())

    def _is_time_to_kill(self, states: list[QueryState]) -> bool:
        """True if the next target query has read enough files, and is still in the same batch after a delay."""
        if len(self.done) >= self.kills:
            return False
        target = states[len(self.done) % len(states)]
        due = (len(self.done) + 1) * self.files // (self.kills + 1)
        if target.files < due or not target.batches.running:
            return False
        time.sleep(KILL_DELAYS[len(self.done) % len(KILL_DELAYS)])
        return read_batches(self._logs[target.name]) == target.batches


def kill_group(driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver with all its processes, and wait until the last one is gone."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    while _is_alive(driver.pid):
        time.sleep(POLL_SECONDS)


def _is_alive(group: int) -> bool:
    """True if a process of the group is running. A zombie (state Z) is not."""
    ps = subprocess.run(["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True, check=True)
    members = (line.split() for line in ps.stdout.splitlines())
    return any(int(pgid) == group and not state.startswith("Z") for pgid, state in members)
