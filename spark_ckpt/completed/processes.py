"""The identity of a process: containers share host names, and process numbers are used again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

# Of /proc/<pid>/stat, behind the name of the program: the state, and the start time.
_STATE, _START_TICKS = 0, 19
_ENDED = ("Z", "X")
_NOT_RUNNING = -1


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The identity of a process among all that ever have its number, without a clock that can be set.

    Args:
        boot_id: unique for each boot of a machine; shared by the containers on it.
        pid_namespace: within which the number counts.
        start_ticks: when the process started, in ticks since the boot; -1 if it had ended by then.
    """

    boot_id: str
    pid_namespace: str
    start_ticks: int


def identity_of(pid: int) -> ProcessIdentity | None:
    """The identity of a process; that of one that has ended if there is none of that number. None where the system does
    not tell."""
    try:
        boot_id = Path(_BOOT_ID).read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except (OSError, ValueError):
        return None
    return ProcessIdentity(boot_id, namespace, _start_ticks(pid))


def is_running(pid: int, identity: ProcessIdentity | None) -> bool | None:
    """True if a process runs whose number and identity were noted.

    Returns:
        None if that cannot be told from here: it was on another machine, in another container, before another boot, or
        its identity is not known.
    """
    now = identity_of(pid)
    if identity is None or now is None:
        return None
    if (identity.boot_id, identity.pid_namespace) != (now.boot_id, now.pid_namespace):
        return None
    return identity.start_ticks != _NOT_RUNNING and identity == now


def _start_ticks(pid: int) -> int:
    try:
        # The name of the program, in brackets, can hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return _NOT_RUNNING if fields[_STATE] in _ENDED else int(fields[_START_TICKS])
    except (OSError, ValueError, IndexError):
        return _NOT_RUNNING
