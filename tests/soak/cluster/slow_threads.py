"""Starved background threads: bases and merges of a small state take many batches, as those of a large one do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

PREFIX = "spark-ckpt-"
"""Start of the names of threads that write bases and merge deltas; the kernel keeps 15 characters."""

_POLL_SECONDS = 0.5


class SlowThreads:
    """While entered, the background threads of some JVMs get only what other threads leave of the cores.

    Args:
        pids: returns the processes; called again and again, since executors come and go.
    """

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        self._pids = pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slow threads", daemon=True)

    def __enter__(self) -> SlowThreads:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            for pid in self._pids():
                slow_down(pid)


def slow_down(pid: int) -> int:
    """Lets the background threads of a JVM run only on cores that are idle; returns their number."""
    slowed = 0
    with suppress(FileNotFoundError, ProcessLookupError):  # the JVM has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # or the thread has
                if (task / "comm").read_text().startswith(PREFIX):
                    os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
                    slowed += 1
    return slowed
