"""Identity of a process: containers share host names, and pids are reused."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = "/proc/sys/kernel/random/boot_id"

# Fields of /proc/<pid>/stat after the program name: state and start time.
_STATE, _START_TICKS = 0, 19
_ENDED = ("Z", "X")
_NOT_RUNNING = -1


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identity of a process among all that ever have its pid, independent of any adjustable clock.

    Args:
        boot_id: id unique to each boot of a machine, shared by its containers.
        pid_namespace: namespace of the pid.
        start_ticks: start time of the process in ticks since boot; -1 if it had already ended.
    """

    boot_id: str
    pid_namespace: str
    start_ticks: int


def identity_of(pid: int) -> ProcessIdentity | None:
    """Identity of a process, or of an ended one if no process has this pid; None if the system does not provide it."""
    try:
        boot_id = Path(_BOOT_ID).read_text(encoding="ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except (OSError, ValueError):
        return None
    return ProcessIdentity(boot_id, namespace, _start_ticks(pid))


def is_running(pid: int, identity: ProcessIdentity | None) -> bool | None:
    """True if the process with this pid and identity still runs.

    Returns:
        None if this process cannot tell: the identity is unknown, or of another machine, container or boot.
    """
    now = identity_of(pid)
    if identity is None or now is None:
        return None
    if (identity.boot_id, identity.pid_namespace) != (now.boot_id, now.pid_namespace):
        return None
    return identity.start_ticks != _NOT_RUNNING and identity == now


def _start_ticks(pid: int) -> int:
    try:
        # The program name, in parentheses, may contain any character.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return _NOT_RUNNING if fields[_STATE] in _ENDED else int(fields[_START_TICKS])
    except (OSError, ValueError, IndexError):
        return _NOT_RUNNING
