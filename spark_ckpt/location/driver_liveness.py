"""Liveness of the driver that owns a checkpoint location, from its records and this machine.

The log has no lease. A claim names the process of a driver, and a driver writes nothing when it ends. A location is
free if it has no claim, or if the claim's process belonged to this boot and pid namespace and is gone. It is in use if
that process is running. Nothing is known about a process elsewhere: an idle query writes nothing for days, and host
names and process ids are reused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from spark_ckpt.completed import ClaimRecord, CompletedCheckpointStore, Owner, Record, RecordFiles
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.completed.processes import is_running
from spark_ckpt.location.errors import LocationInUseError
from spark_ckpt.storage import Storage

OPERATION = "spark-ckpt "
"""Prefix of the run id in a command's claim. The claim holds the location only while the command runs."""


class Holder(Enum):
    """State of the driver with the last claim."""

    NONE = "none"
    """No driver, or its process is gone."""
    ALIVE = "alive"
    """Its process is running."""
    UNKNOWN = "unknown"
    """It ran elsewhere: on another host, in another container, or before the last boot."""


_HOLDERS = {True: Holder.ALIVE, False: Holder.NONE, None: Holder.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Hold:
    """The possible owner of a location.

    Args:
        holder: state of the driver.
        owner: the driver with the last claim; None if no driver holds one.
        last_ms: time of its newest record, in milliseconds since 1970 UTC.
        logs_are_fenced: whether the driver stops at its next entry of Spark's logs after a rollback.
    """

    holder: Holder
    owner: Owner | None = None
    last_ms: int = 0
    logs_are_fenced: bool = False


def hold_of(records: Iterable[Record]) -> Hold:
    """The possible owner of the location with these records.

    Args:
        records: records of its log, ascending by id.
    """
    records = list(records)
    claims = [record for record in records if isinstance(record, ClaimRecord)]
    if not claims or claims[-1].owner.run_id.startswith(OPERATION):
        return Hold(Holder.NONE)
    claim = claims[-1]
    last_ms = max(record.timestamp_ms for record in records if record.generation == claim.generation)
    holder = _HOLDERS[is_running(claim.owner.pid, claim.process)]
    return Hold(holder, claim.owner, last_ms, claim.log_epoch is not None)


def may_write(records: Iterable[Record]) -> bool:
    """True if a driver with a claim may still be running, although a command has claimed the location since.

    Args:
        records: records of the log.
    """
    claims = [record for record in records if isinstance(record, ClaimRecord)]
    drivers = [claim for claim in claims if not claim.owner.run_id.startswith(OPERATION)]
    return any(is_running(claim.owner.pid, claim.process) is not False for claim in drivers)


HasEnded: TypeAlias = Callable[[Owner], bool]
"""Tells whether a run has certainly ended, although the process of its driver is running."""


def never_ended(_: Owner) -> bool:
    """Knows of no run."""
    return False


def check_fenced(location: str, store: CompletedCheckpointStore, has_ended: HasEnded = never_ended) -> None:
    """Checks that no driver is known to run, and that one elsewhere would stop at its next entry of Spark's logs.

    Args:
        location: the checkpoint location, for the error.
        store: its completed-checkpoint store, recovered.
        has_ended: tells whether the driver's run has ended.

    Raises:
        LocationInUseError: the process of the driver is running on this machine; or it may be running elsewhere, and
            its logs are not fenced.
    """
    hold = _hold(store, has_ended)
    if hold.holder is Holder.ALIVE or (hold.holder is Holder.UNKNOWN and not hold.logs_are_fenced):
        raise _in_use(location, hold)


def check_not_running(location: str, store: CompletedCheckpointStore, has_ended: HasEnded = never_ended) -> None:
    """Checks that no driver is known to run.

    A driver elsewhere may run. The check is for an operation that such a driver cannot disturb: each of its steps that
    the driver could take as well is an exclusive create, and its claim fences the driver.

    Args:
        location: the checkpoint location, for the error.
        store: its completed-checkpoint store, recovered.
        has_ended: tells whether the driver's run has ended.

    Raises:
        LocationInUseError: the process of the driver is running on this machine.
    """
    hold = _hold(store, has_ended)
    if hold.holder is Holder.ALIVE:
        raise _in_use(location, hold)


def check_no_known_driver(storage: Storage) -> None:
    """Checks that no driver is known to run, for an operation that only reads the location. Claims nothing.

    Args:
        storage: storage of the checkpoint location. One whose log is in ZooKeeper is not checked.

    Raises:
        LocationInUseError: the process of the driver is running on this machine.
        StorageError: the log cannot be read.
    """
    records = sorted(RecordFiles(storage).read_each().items())
    hold = hold_of(record for _, record in records if not isinstance(record, DamagedRecordError))
    if hold.holder is Holder.ALIVE:
        raise _in_use(storage.location, hold)


def _hold(store: CompletedCheckpointStore, has_ended: HasEnded) -> Hold:
    hold = hold_of(sorted([*store.claims(), *store.all()], key=lambda record: record.id))
    if hold.holder is not Holder.ALIVE or hold.owner is None:
        return hold  # elsewhere, another process may have the same number
    return Hold(Holder.NONE) if has_ended(hold.owner) else hold


def _in_use(location: str, hold: Hold) -> LocationInUseError:
    return LocationInUseError(location, str(hold.owner), hold.holder is Holder.ALIVE, hold.last_ms)
