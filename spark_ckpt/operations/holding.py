"""Whether a driver holds a checkpoint location: what its records and this machine tell.

The log has no lease. A claim names the host and the process of a driver, and nothing is written when a driver ends.
So it is known that nobody holds a location if there is no claim, or if the claim's process ran on this host and is
gone. It is known that somebody may if that process is there. Of a process on another host nothing is known: an idle
query writes nothing for days.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.completed import ClaimRecord, CompletedCheckpointStore, Owner, Record
from spark_ckpt.operations.errors import LocationInUseError

OPERATION = "spark-ckpt "
"""How the run id begins of a claim that a command has made; it holds nothing once the command has ended."""

# Of /proc/<pid>/stat, behind the name of the program and the state.
_ZOMBIE = "Z"
_START_TIME = 18


class Holder(Enum):
    """What is known of the driver that has claimed last."""

    NONE = "none"
    """There is none, or it is gone."""
    ALIVE = "alive"
    """Its process runs on this host."""
    UNKNOWN = "unknown"
    """It ran on another host."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Who may hold a location.

    Args:
        holder: what is known.
        owner: the driver that has claimed last; None if no driver has.
        last_ms: when its newest record was written, in milliseconds since 1970 UTC.
    """

    holder: Holder
    owner: Owner | None = None
    last_ms: int = 0


def hold_of(records: Iterable[Record], host: str | None = None) -> Hold:
    """Who may hold the location that has these records.

    Args:
        records: of its log, ascending by id.
        host: name of this machine, for tests.
    """
    records = list(records)
    claims = [record for record in records if isinstance(record, ClaimRecord)]
    if not claims or claims[-1].owner.run_id.startswith(OPERATION):
        return Hold(Holder.NONE)
    owner, claimed_ms = claims[-1].owner, claims[-1].timestamp_ms
    last_ms = max(record.timestamp_ms for record in records if record.generation == claims[-1].generation)
    if owner.host != (host or socket.gethostname()):
        return Hold(Holder.UNKNOWN, owner, last_ms)
    return Hold(Holder.ALIVE if _is_running(owner.pid, claimed_ms) else Holder.NONE, owner, last_ms)


def check_not_held(location: str, store: CompletedCheckpointStore) -> None:
    """Makes sure that no driver may be running.

    Args:
        location: the checkpoint location, for the error.
        store: of its completed checkpoints, recovered.

    Raises:
        LocationInUseError: one may.
    """
    hold = hold_of(sorted([*store.claims(), *store.all()], key=lambda record: record.id))
    if hold.holder is not Holder.NONE:
        raise LocationInUseError(location, str(hold.owner), hold.holder is Holder.ALIVE, hold.last_ms)


def _is_running(pid: int, since_ms: int) -> bool:
    """Whether a process is there that was there already at a time: its number may have been given to another one."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            state, *fields = stat.read().rpartition(")")[2].split()
        with open("/proc/stat", encoding="ascii") as stat:
            booted = next(int(line.split()[1]) for line in stat if line.startswith("btime "))
    except (OSError, StopIteration):
        return True  # no Linux: it may be the driver
    started_ms = booted * 1000 + int(fields[_START_TIME]) * 1000 // os.sysconf("SC_CLK_TCK")
    return state != _ZOMBIE and started_ms <= since_ms
