"""Executor JVMs of a standalone cluster from outside: live heap, background work, ends, and uncaught exceptions."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_BACKGROUND = re.compile(r'^"spark-ckpt-(base-snapshot|heavy-merge|merge)[^"]*"')
_OURS = re.compile(r"\bat (?:org\.apache\.spark\.sql\.ckpt|io\.github\.sparkckpt\.engine)\.")
_TOTAL = re.compile(r"^Total\s+\d+\s+(\d+)", re.MULTILINE)
_ENDED = re.compile(r"Executor (\S+) finished with state (\S+)(?:.*?exitStatus (\d+))?")
_UNCAUGHT = re.compile(r"Uncaught exception in thread|^Exception in thread ", re.MULTILINE)
KILLED_STATUS = 137
"""Exit status of a process after SIGKILL."""


def live_heap_bytes(pid: int) -> int | None:
    """Bytes of the live objects on a JVM's heap, after a full GC; none if the JVM has ended."""
    total = _TOTAL.search(_jcmd(pid, "GC.class_histogram"))
    return None if total is None else int(total[1])


def background_work(pid: int) -> set[str]:
    """Kinds of background work that a JVM is doing now: `base-snapshot`, `heavy-merge`, `merge`."""
    return parse_background(_jcmd(pid, "Thread.print"))


def parse_background(dump: str) -> set[str]:
    """Kinds of background work in a thread dump: a thread of ours that has a frame of ours."""
    threads = dump.split("\n\n")
    return {name[1] for thread in threads if (name := _BACKGROUND.match(thread)) and _OURS.search(thread)}


def _jcmd(pid: int, command: str) -> str:
    done = subprocess.run(["jcmd", str(pid), command], capture_output=True, text=True, timeout=600)
    return done.stdout if done.returncode == 0 else ""


@dataclass(frozen=True)
class End:
    """End of an executor as its worker logged it.

    Args:
        executor: application and number.
        status: exit status; none if the worker ended it.
    """

    executor: str
    status: int | None


def parse_ends(log: str) -> list[End]:
    """Ends of executors in the log of a worker, but for those that the worker was told to end."""
    found = (_ENDED.search(line) for line in log.splitlines())
    return [End(end[1], int(end[3]) if end[3] else None) for end in found if end and end[2] != "KILLED"]


def unexpected_ends(logs: Iterable[str], kills: int) -> list[str]:
    """Ends of executors that no kill explains, in words.

    Args:
        logs: the workers' logs.
        kills: number of executors that the test has killed.
    """
    ends = [end for log in logs for end in parse_ends(log)]
    found = [f"executor {end.executor} ended with status {end.status}" for end in ends if end.status != KILLED_STATUS]
    killed = Counter(end.status for end in ends)[KILLED_STATUS]
    if killed > kills:
        found.append(f"{killed} executors were killed, {kills} of them by the test")
    return found


def uncaught(files: Iterable[Path]) -> list[str]:
    """Uncaught exceptions in the logs of JVMs, each with its first lines."""
    found = []
    for file in files:
        text = file.read_text(errors="replace")
        found += [f"{file}:\n{text[match.start() : match.start() + 1500]}" for match in _UNCAUGHT.finditer(text)]
    return found
