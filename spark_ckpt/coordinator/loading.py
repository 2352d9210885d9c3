"""Completed checkpoints, read back from storage and checked against their records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.coordinator.batch_state import SparkBatch
from spark_ckpt.coordinator.chains import ChainTable, all_entries, files_of
from spark_ckpt.coordinator.compose import decompose
from spark_ckpt.coordinator.layout import SHARED, in_location
from spark_ckpt.coordinator.messages import StoreKey
from spark_ckpt.coordinator.statistics import CheckpointStats
from spark_ckpt.coordinator.stats_state import history_of
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError, StateFileNotFoundError
from spark_ckpt.metadata import CheckpointMetadata, loads
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True, eq=False)
class CheckpointState:
    """A completed checkpoint in memory; version 0 has neither record nor chains.

    Args:
        version: version of the state.
        record: its record.
        batch: what Spark knows of it.
        table: the chains of all subtasks.
        history: statistics of it and of checkpoints before it, oldest first, as its `_metadata` has them.
    """

    version: int = 0
    record: CheckpointRecord | None = None
    batch: SparkBatch | None = None
    table: ChainTable = field(default_factory=dict)
    history: tuple[CheckpointStats, ...] = ()

    def files(self) -> set[str]:
        """State files that it refers to, relative to `ckpt`."""
        return files_of(self.table)

    def ckpt_ids(self) -> dict[StoreKey, list[str]]:
        """The ids of the states, by store and partition."""
        return {key: [chain.ckpt_id for chain in chains] for key, chains in self.table.items()}


def load_checkpoint(
    storage: Storage, record: CheckpointRecord, retained: Sequence[CheckpointRecord]
) -> CheckpointState:
    """Reads a checkpoint and makes sure that its files are there.

    Args:
        storage: of the checkpoint location.
        record: of the checkpoint.
        retained: all checkpoints, to tell which one is good if this one is not.

    Raises:
        DamagedCheckpointError: a file is missing, too short, or not what was written.
        StorageError: the storage does not answer; the checkpoint may well be whole.
    """
    try:
        return read_checkpoint(storage, record)
    except DamagedCheckpointError as damaged:
        good = _newest_good(storage, record, retained)
        raise DamagedCheckpointError(
            damaged.path, record.id, damaged.reason, good.id if good else None, _way_out(storage, good)
        ) from damaged


def read_checkpoint(storage: Storage, record: CheckpointRecord) -> CheckpointState:
    """As `load_checkpoint`, without looking for another one."""
    state = state_of(storage, record, read_metadata(storage, record))
    check_files(storage, record, state.table)
    return state


def read_metadata(storage: Storage, record: CheckpointRecord, name: str | None = None) -> CheckpointMetadata:
    """The `_metadata` of a checkpoint, which is what its record says.

    Args:
        storage: of the checkpoint location, or of a savepoint.
        record: of the checkpoint.
        name: name of the file, unless it lies where it lies in a location.

    Raises:
        DamagedCheckpointError: it is missing, or not what was written.
        StorageError: the storage does not answer.
    """
    name = name or in_location(record.metadata.path)
    path = storage.describe(name)
    try:
        data = storage.read(name)
    except StateFileNotFoundError:
        raise _damaged(record, path, "the file is missing") from None
    if len(data) != record.metadata.size:
        raise _damaged(record, path, f"{len(data)} bytes instead of {record.metadata.size}")
    if hashlib.sha256(data).hexdigest() != record.metadata.sha256:
        raise _damaged(record, path, "its digest is not the one that was recorded")
    try:
        return loads(data, path)
    except SparkCkptError as e:
        raise _damaged(record, path, str(e)) from e


def state_of(storage: Storage, record: CheckpointRecord, metadata: CheckpointMetadata) -> CheckpointState:
    """What a `_metadata` says, whether or not the state files are there.

    Raises:
        DamagedCheckpointError: it is not what spark-ckpt writes.
    """
    try:
        batch, table = decompose(metadata)
        history = history_of(metadata) or ()
    except SparkCkptError as e:
        raise _damaged(record, storage.describe(in_location(record.metadata.path)), str(e)) from e
    return CheckpointState(batch.version, record, batch, table, history)


def check_files(storage: Storage, record: CheckpointRecord, table: ChainTable) -> None:
    """Makes sure that the state files of a checkpoint are there, with the bytes they should have.

    Raises:
        DamagedCheckpointError: one is not.
        StorageError: the storage does not answer.
    """
    for path, reason in damaged_files(storage, table).items():
        raise _damaged(record, storage.describe(in_location(path)), reason)


def damaged_files(storage: Storage, table: ChainTable) -> dict[str, str]:
    """The state files that are missing or have another length, relative to `ckpt`, and what is wrong with each.

    Raises:
        StorageError: the storage does not answer.
    """
    needed = {entry.path: entry.file_size for entry in all_entries(table) if entry.path is not None}
    if not needed:
        return {}
    there: Mapping[str, int] = {f"{SHARED}/{file.name}": file.size for file in storage.list(in_location(SHARED))}
    damaged = {}
    for path, size in needed.items():
        if path not in there:
            damaged[path] = "the state file is missing"
        elif there[path] != size:
            damaged[path] = f"the state file has {there[path]} bytes instead of {size}"
    return damaged


def _newest_good(
    storage: Storage, record: CheckpointRecord, retained: Sequence[CheckpointRecord]
) -> CheckpointRecord | None:
    for other in reversed(retained):
        if other.id != record.id:
            try:
                read_checkpoint(storage, other)
            except SparkCkptError:
                continue
            return other
    return None


def _way_out(storage: Storage, good: CheckpointRecord | None) -> str:
    if good is None:
        return (
            "No other retained checkpoint is whole: restore the file from a backup, or start the query with a new "
            "checkpoint location"
        )
    return (
        f"The newest whole checkpoint is {good.id}, of batch {good.batch_id}: restore the file from a backup, or go "
        f"back to it and start the query again: spark-ckpt rollback {storage.location} --id {good.id}"
    )


def _damaged(record: CheckpointRecord, path: str, reason: str) -> DamagedCheckpointError:
    return DamagedCheckpointError(path, record.id, reason, None, "")
