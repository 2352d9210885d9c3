"""Real processes: drivers started as separate programs, found through their parents, and killed by pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.checkpoints import committed_batches
from tests.support.provider import REPOSITORY, ProviderUnderTest
from tests.support.waiting import eventually

JOBS = REPOSITORY / "tests" / "spark" / "jobs"
BRIDGE = "spark_ckpt.bridge"
"""Text that identifies the side process by its command line."""

PATIENCE = 1500.0


def children(pid: int) -> list[int]:
    """Running child processes of `pid`."""
    found: list[int] = []
    with suppress(OSError):  # the process ended during the look-up
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # or one of its threads did
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, parents first."""
    found: list[int] = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def command_line(pid: int) -> str:
    """Command line of a process; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def find_below(pid: int, text: str) -> list[int]:
    """Descendants of `pid` whose command line contains `text`."""
    return [child for child in descendants(pid) if text in command_line(child)]


def kill(pid: int) -> None:
    """Sends SIGKILL; ignores a process that has already ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def hang(pid: int) -> None:
    """Stops a process as SIGSTOP does: it hangs, and answers nothing. Ignores one that has already ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)


class DriverJob:
    """One run of a driver program from tests/spark/jobs, in a process group of its own."""

    def __init__(
        self,
        script: str,
        folder: Path,
        arguments: Sequence[str],
        *,
        name: str = "driver",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.location = folder / "checkpoint"
        number = len(list(folder.glob(f"{name}-*.log")))
        self.log = folder / f"{name}-{number}.log"
        command = [sys.executable, str(JOBS / script), "--folder", str(folder), *arguments]
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=folder,
                env=os.environ | {"PYTHONPATH": path} | dict(environment or {}),
            )

    @property
    def pid(self) -> int:
        """Pid of the driver's Python process."""
        return self.process.pid

    def running(self) -> bool:
        """True while the driver has not ended."""
        return self.process.poll() is None

    def output(self) -> str:
        """The driver's output so far."""
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """Kills the driver, its JVM, the side process and everything else below it at once, with SIGKILL."""
        below = descendants(self.pid)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        for pid in below:
            kill(pid)
        self.process.wait(PATIENCE)

    def wait(self) -> int:
        """Waits for the driver to end by itself and returns its exit status."""
        return self.process.wait(PATIENCE)

    def await_batches(self, count: int) -> bool:
        """Waits until `count` batches are committed; false if the driver ends first."""
        return self.await_(lambda: len(committed_batches(self.location)) >= count)

    def await_(self, condition: Callable[[], bool]) -> bool:
        """Waits for `condition`; false if the driver ends before it holds."""

        holds = False

        def came() -> bool:
            nonlocal holds
            holds = condition()
            return holds or not self.running()

        eventually(came, PATIENCE, lambda: f"the driver makes headway:\n{self.output()[-4000:]}")
        return holds or condition()

    def side_process(self) -> int:
        """Pid of the coordinator that belongs to the driver's JVM."""
        found: list[int] = []

        def look() -> bool:
            found[:] = find_below(self.pid, BRIDGE)
            return bool(found)

        assert self.await_(look), f"the driver has no side process:\n{self.output()[-4000:]}"
        return found[0]


def job_arguments(provider: ProviderUnderTest, **options: object) -> list[str]:
    """Options of a driver program; underscores in names become dashes, and a list repeats the option."""
    arguments = ["--provider", provider.name]
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            arguments += [f"--{name.replace('_', '-')}", str(one)]
    return arguments
