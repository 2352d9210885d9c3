"""CPU time and disk writes of processes, of their threads and of the machine, from Linux's `/proc`."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Resources used since the processes started.

    Args:
        cpu_seconds: CPU time of all threads, in user and kernel mode; of ended children as well.
        written_bytes: bytes written to files.
    """

    cpu_seconds: float
    written_bytes: int

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(self.cpu_seconds - earlier.cpu_seconds, self.written_bytes - earlier.written_bytes)


def usage(root: int) -> Usage:
    """Usage of the process `root` and its descendants."""
    ticks, written = 0, 0
    for pid in _tree(root):
        try:
            fields = _stat(Path(f"/proc/{pid}"))
            io = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended; its parent counts it
        ticks += sum(map(int, fields[11:15]))
        written += next(int(line.split()[1]) for line in io.splitlines() if line.startswith("write_bytes"))
    return Usage(ticks / _TICKS, written)


def thread_seconds(pid: int, names: tuple[str, ...]) -> float:
    """CPU time of the threads of a process whose names begin so. The kernel keeps 15 characters of a name."""
    ticks = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            if (task / "comm").read_text(encoding="utf-8", errors="replace").startswith(names):
                ticks += sum(map(int, _stat(task)[11:13]))
    return ticks / _TICKS


def busy_cores(seconds: float) -> float:
    """Cores that are busy during the next seconds, on average."""
    before = _busy_ticks()
    time.sleep(seconds)
    return (_busy_ticks() - before) / _TICKS / seconds


def _busy_ticks() -> int:
    """Time of all cores that was neither idle nor spent waiting for I/O."""
    fields = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    return sum(map(int, fields[:3])) + sum(map(int, fields[5:8]))


def _tree(root: int) -> Iterator[int]:
    children = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children[int(_stat(entry)[1])].append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children[pid]


def _stat(folder: Path) -> list[str]:
    """Fields of the `stat` of a process or thread behind its name, which may contain spaces."""
    return (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
