"""Starved background threads: bases and merges of a small state take many batches, as those of a large one do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

PREFIX = "spark-ckpt-"
"""Start of the names of threads that write bases and merge deltas; the kernel keeps 15 characters."""

LOWEST = 19
_POLL_SECONDS = 0.5
_LOAD_PRIORITY = 10

_LOAD = """
import os
os.nice({priority})
while os.getppid() == {parent}:
    for _ in range(1_000_000):
        pass
"""
"""Program that uses idle cores, and ends with its parent."""


class SlowThreads:
    """While entered, the background threads of some JVMs get a small share of the cores.

    They have the lowest priority, and beside them runs a load that has a higher one, but a lower one than tasks.

    Args:
        pids: returns the processes; called again and again, since executors come and go.
    """

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow threads", daemon=True)
        self._load: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> SlowThreads:
        program = _LOAD.format(priority=_LOAD_PRIORITY, parent=os.getpid())
        self._load = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(os.cpu_count() or 1)]
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        for process in self._load:
            process.kill()
            process.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves idle cores to the background threads in the block, so that their work ends."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in self._load:
            process.send_signal(number)

    def _run(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            for pid in self._pids():
                slow_down(pid)


def slow_down(pid: int) -> int:
    """Gives the background threads of a JVM the lowest priority; returns their number."""
    slowed = 0
    with suppress(FileNotFoundError, ProcessLookupError):  # the JVM has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # or the thread has
                if (task / "comm").read_text().startswith(PREFIX):
                    # On Linux, the priority of a thread is its own.
                    os.setpriority(os.PRIO_PROCESS, int(task.name), LOWEST)
                    slowed += 1
    return slowed
