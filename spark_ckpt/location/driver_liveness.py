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

from spark_ckpt.completed import OPERATION, ClaimRecord, CompletedCheckpointStore, Owner, Record, RecordFiles
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.completed.processes import is_running
from spark_ckpt.location.errors import LocationInUseError
from spark_ckpt.storage import Storage


class Liveness(Enum):
    """State of the driver with the last claim."""

    NONE = "none"
    """No driver, or its process is gone."""
    ALIVE = "alive"
    """Its process is running."""
    UNKNOWN = "unknown"
    """It ran elsewhere: on another host, in another container, or before the last boot."""


_LIVENESS = {True: Liveness.ALIVE, False: Liveness.NONE, None: Liveness.UNKNOWN}


@dataclass(frozen=True, slots=True)
class LastDriver:
    """The driver with the last claim of a location, which may own it.

    Args:
        liveness: state of the driver.
        owner: the driver with the last claim; None if no driver holds one.
        last_ms: time of its newest record, in milliseconds since 1970 UTC.
        logs_are_fenced: whether the driver stops at its next entry of Spark's logs after a rollback.
    """

    liveness: Liveness
    owner: Owner | None = None
    last_ms: int = 0
    logs_are_fenced: bool = False


def last_driver_of(records: Iterable[Record]) -> LastDriver:
    """The last driver of the location with these records.

    Args:
        records: records of its log, ascending by id.
    """
    records = list(records)
    claims = [record for record in records if isinstance(record, ClaimRecord)]
    if not claims or claims[-1].owner.run_id.startswith(OPERATION):
        return LastDriver(Liveness.NONE)
    claim = claims[-1]
    last_ms = max(record.timestamp_ms for record in records if record.generation == claim.generation)
    liveness = _LIVENESS[is_running(claim.owner.pid, claim.process)]
    return LastDriver(liveness, claim.owner, last_ms, claim.log_epoch is not None)


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
    last = _last_driver(store, has_ended)
    if last.liveness is Liveness.ALIVE or (last.liveness is Liveness.UNKNOWN and not last.logs_are_fenced):
        raise _in_use(location, last)


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
    last = _last_driver(store, has_ended)
    if last.liveness is Liveness.ALIVE:
        raise _in_use(location, last)


def check_no_known_driver(storage: Storage) -> None:
    """Checks that no driver is known to run, for an operation that only reads the location. Claims nothing.

    Args:
        storage: storage of the checkpoint location. One whose log is in ZooKeeper is not checked.

    Raises:
        LocationInUseError: the process of the driver is running on this machine.
        StorageError: the log cannot be read.
    """
    records = sorted(RecordFiles(storage).read_each().items())
    last = last_driver_of(record for _, record in records if not isinstance(record, DamagedRecordError))
    if last.liveness is Liveness.ALIVE:
        raise _in_use(storage.location, last)


def _last_driver(store: CompletedCheckpointStore, has_ended: HasEnded) -> LastDriver:
    last = last_driver_of(sorted([*store.claims(), *store.all()], key=lambda record: record.id))
    if last.liveness is not Liveness.ALIVE or last.owner is None:
        return last  # elsewhere, another process may have the same number
    return LastDriver(Liveness.NONE) if has_ended(last.owner) else last


def _in_use(location: str, last: LastDriver) -> LocationInUseError:
    return LocationInUseError(location, str(last.owner), last.liveness is Liveness.ALIVE, last.last_ms)
