"""Liveness of the driver that owns a checkpoint location, from its records and this machine.

The log has no lease. A claim names the process of a driver, and nothing is written when a driver ends. A location is
known to be free if it has no claim, or if the claim's process ran in this boot and pid namespace and is gone. It may be
in use if that very process is there. Of a process elsewhere nothing is known: an idle query writes nothing for days,
and host names and process numbers are used again.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from spark_ckpt.clock import Clock
from spark_ckpt.completed import ClaimRecord, CompletedCheckpointStore, Owner, Record, RecordFiles
from spark_ckpt.completed.processes import is_running
from spark_ckpt.config import STORE, CheckpointConfig
from spark_ckpt.location.listing import list_completed
from spark_ckpt.location.open_store import make_store
from spark_ckpt.operations.errors import LocationInUseError
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import Storage

OPERATION = "spark-ckpt "
"""Prefix of the run id in a claim that a command has made. The claim holds nothing once the command has ended."""


class Holder(Enum):
    """State of the driver that has claimed last."""

    NONE = "none"
    """There is none, or it is gone."""
    ALIVE = "alive"
    """Its process runs."""
    UNKNOWN = "unknown"
    """It ran elsewhere: on another host, in another container, or before this one was booted."""


_HOLDERS = {True: Holder.ALIVE, False: Holder.NONE, None: Holder.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Hold:
    """The possible owner of a location.

    Args:
        holder: what is known.
        owner: the driver that has claimed last; None if no driver has.
        last_ms: when its newest record was written, in milliseconds since 1970 UTC.
    """

    holder: Holder
    owner: Owner | None = None
    last_ms: int = 0


def hold_of(records: Iterable[Record]) -> Hold:
    """The possible owner of the location with these records.

    Args:
        records: of its log, ascending by id.
    """
    records = list(records)
    claims = [record for record in records if isinstance(record, ClaimRecord)]
    if not claims or claims[-1].owner.run_id.startswith(OPERATION):
        return Hold(Holder.NONE)
    claim = claims[-1]
    last_ms = max(record.timestamp_ms for record in records if record.generation == claim.generation)
    return Hold(_HOLDERS[is_running(claim.owner.pid, claim.process)], claim.owner, last_ms)


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


def open_store(
    storage: Storage, settings: Mapping[str, str], operation: str, clock: Clock
) -> tuple[CompletedCheckpointStore, Owner]:
    """The store that the settings name, neither recovered nor claimed; if they name none, the one that the location
    shows.

    Args:
        storage: of the checkpoint location.
        settings: those of the query that begin with `spark.sql.streaming.stateStore.ckpt.`.
        operation: name of the command.
        clock: where time comes from.

    Returns:
        The store, and who claims with it.

    Raises:
        SettingError: a setting has an impossible value, contradicts another one, or is none of ours.
        LogMissingError: the location shows that it had a log.
        SparkLogFormatError: Spark's file with the query's id is damaged.
        StorageError: the location cannot be read.
    """
    config = CheckpointConfig.parse_strictly(settings)
    if STORE.key not in settings and not RecordFiles(storage).ids():
        list_completed(storage)
        config = replace(config, store="standalone")
    token = str(uuid.uuid4())
    run_id = f"{OPERATION}{operation} {token}"
    owner = Owner(socket.gethostname(), os.getpid(), token, SparkLog(storage).query_id(), run_id)
    return make_store(config, storage, owner, clock), owner
