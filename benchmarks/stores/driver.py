"""A driver program in a process group of its own, which can be killed with its JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.stores import machine
from benchmarks.stores.runner import RunFailedError, end_of, environment

PATIENCE = 600.0
"""Timeout in seconds that only a hang exceeds."""


class Driver:
    """A driver process in a process group of its own.

    Args:
        name: name of the run, for messages.
        command: the command.
        log: file for its output.
        patience: most seconds to wait for a condition.
        look_seconds: seconds between two looks at it.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, *, patience: float = PATIENCE, look_seconds: float = 0.1
    ) -> None:
        self._name, self._log = name, log
        self._patience, self._look_seconds = patience, look_seconds
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(),
                cwd=machine.REPOSITORY,
                start_new_session=True,
            )

    def running(self) -> bool:
        """True while it has not ended."""
        return self._process.poll() is None

    def await_(self, condition: Callable[[], bool], what: str) -> None:
        """Waits for a condition.

        Raises:
            RunFailedError: the driver has ended, or the condition does not hold in time.
        """
        deadline = time.monotonic() + self._patience
        while True:
            has_ended = not self.running()
            if condition():
                return
            if has_ended or time.monotonic() > deadline:
                raise RunFailedError(f"{self._name}: the driver ended or hung before it {what}; {end_of(self._log)}")
            time.sleep(self._look_seconds)

    def kill(self) -> None:
        """Kills the driver and its JVM, if they still run."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
