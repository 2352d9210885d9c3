"""Completed checkpoints, read back from storage and checked against their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.chains import ChainTable, all_entries, files_of
from spark_ckpt.checkpoint.compose import decompose
from spark_ckpt.checkpoint.errors import NO_OTHER_IS_WHOLE
from spark_ckpt.checkpoint.layout import SHARED, in_location
from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.checkpoint.statistics_state import history_of
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import (
    DamagedCheckpointError,
    SparkCkptError,
    StateFileNotFoundError,
    StorageError,
    UnsupportedFormatError,
)
from spark_ckpt.format.keys import StoreKey
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

    def state_ids(self) -> dict[StoreKey, list[str]]:
        """The ids of the states, by store and partition."""
        return {key: [chain.state_id for chain in chains] for key, chains in self.table.items()}


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
            damaged.path, record.id, damaged.reason, good.id if good else None, way_out(storage, good)
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
    return _decoded(record, storage.describe(name), storage.read_many([name])[name])


def files_named(
    storage: Storage, records: Sequence[CheckpointRecord]
) -> Iterator[tuple[CheckpointRecord, set[str] | SparkCkptError]]:
    """The state files that checkpoints refer to, relative to `ckpt`, whether or not they are there; or why that cannot
    be told. The `_metadata` of all of them are read at once."""
    found = storage.read_many([in_location(record.metadata.path) for record in records])
    for record in records:
        name = in_location(record.metadata.path)
        try:
            metadata = _decoded(record, storage.describe(name), found.pop(name))
            yield record, state_of(storage, record, metadata).files()
        except SparkCkptError as e:
            yield record, e


def _decoded(record: CheckpointRecord, path: str, data: bytes | StorageError) -> CheckpointMetadata:
    if isinstance(data, StateFileNotFoundError):
        raise _damaged(record, path, "the file is missing") from None
    if isinstance(data, StorageError):
        raise data
    if reason := record.metadata.mismatch(data):
        raise _damaged(record, path, reason)
    try:
        return loads(data, path)
    except SparkCkptError as e:
        raise _damaged(record, path, str(e)) from e


def state_of(storage: Storage, record: CheckpointRecord, metadata: CheckpointMetadata) -> CheckpointState:
    """The content of a `_metadata`, with or without its state files.

    Raises:
        DamagedCheckpointError: it is not what spark-ckpt writes.
        UnsupportedFormatError: a later release wrote it, in a way that this release would misread.
    """
    path = storage.describe(in_location(record.metadata.path))
    try:
        batch, table = decompose(metadata)
        history = history_of(metadata) or ()
    except UnsupportedFormatError as e:
        raise UnsupportedFormatError(path, e.needs, e.features) from e
    except SparkCkptError as e:
        raise _damaged(record, path, str(e)) from e
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


def way_out(storage: Storage, good: CheckpointRecord | None) -> str:
    """Advice about a damaged checkpoint, given the newest one that is whole."""
    if good is None:
        return NO_OTHER_IS_WHOLE
    return (
        f"The newest whole checkpoint is {good.id}, of batch {good.batch_id}: restore the file from a backup, or go "
        f"back to it and start the query again: spark-ckpt rollback {storage.location} --id {good.id}"
    )


def _damaged(record: CheckpointRecord, path: str, reason: str) -> DamagedCheckpointError:
    return DamagedCheckpointError(path, record.id, reason, None, "")
