"""Loading of completed checkpoints from storage, checked against their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.chains import Chain, ChainTable, all_entries, files_of
from spark_ckpt.checkpoint.compose import decompose, state_files_of
from spark_ckpt.checkpoint.errors import NO_OTHER_IS_WHOLE, NO_WAY_BACK, VersionNotFoundError, go_back
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
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.storage import FileInfo, Request, Storage

_Content = TypeVar("_Content")


@dataclass(frozen=True, eq=False)  # without slots, for the cached property
class CheckpointState:
    """Completed checkpoint in memory. Version 0 has neither record nor chains.

    Args:
        version: version of the state.
        record: record of the checkpoint.
        batch: description of its batch.
        table: chains of all subtasks.
        history: statistics in its `_metadata`, of this and earlier checkpoints, oldest first.
        assigned: True if its chains were assigned to other partitions since, so that their rows are estimates.
    """

    version: int = 0
    record: CheckpointRecord | None = None
    batch: SparkBatch | None = None
    table: ChainTable = field(default_factory=dict)
    history: tuple[CheckpointStats, ...] = ()
    assigned: bool = False

    @cached_property
    def has_changes(self) -> bool:
        """True if its batch has changed the state of a partition: then it has a segment of its own version. Visits all
        chains once."""
        return any(
            chain.entries and chain.entries[-1].version == self.version
            for chains in self.table.values()
            for chain in chains
        )

    def has_exact_rows(self, chain: Chain) -> bool:
        """True if a store has counted the rows of a chain of the checkpoint.

        A rescale estimates them, and its checkpoint has no segment of its own version. That of a batch has one, unless
        no partition had changes: then this is False, too.
        """
        if self.assigned:
            return False
        return self.has_changes and not any(entry.filters for entry in chain.entries)

    def files(self) -> set[str]:
        """State files of the checkpoint, relative to `ckpt`."""
        return files_of(self.table)

    def state_ids(self) -> dict[StoreKey, list[str]]:
        """State ids by store and partition."""
        return {key: [chain.state_id for chain in chains] for key, chains in self.table.items()}


def load_checkpoint(
    storage: Storage, record: CheckpointRecord, retained: Sequence[CheckpointRecord]
) -> CheckpointState:
    """Load a checkpoint and check its files.

    Args:
        storage: storage of the checkpoint location.
        record: record of the checkpoint.
        retained: all retained checkpoints, from which a damage report names an intact one.

    Raises:
        DamagedCheckpointError: a file is missing, truncated or corrupt.
        StorageError: the storage does not answer; the checkpoint may be intact.
    """
    try:
        return read_checkpoint(storage, record)
    except DamagedCheckpointError as damaged:
        good = _newest_good(storage, record, retained)
        raise DamagedCheckpointError(
            damaged.path, record.id, damaged.reason, good.id if good else None, way_out(storage, good)
        ) from damaged


def read_checkpoint(storage: Storage, record: CheckpointRecord) -> CheckpointState:
    """Load a checkpoint and check its files, without a search for an intact one after damage."""
    listing = list_shared(storage)
    state = state_of(storage, record, read_metadata(storage, record))
    check_files(storage, record, state.table, listing)
    return state


def read_metadata(storage: Storage, record: CheckpointRecord, name: str | None = None) -> CheckpointMetadata:
    """`_metadata` of a checkpoint, checked against the digest in its record.

    Args:
        storage: storage of the checkpoint location, or of a savepoint.
        record: record of the checkpoint.
        name: path of the file if it differs from the record's.

    Raises:
        DamagedCheckpointError: missing or corrupt.
        StorageError: the storage does not answer.
    """
    name = name or in_location(record.metadata.path)
    return _decoded(record, storage.describe(name), storage.read_many([name])[name])


def files_named(
    storage: Storage, records: Sequence[CheckpointRecord]
) -> Iterator[tuple[CheckpointRecord, set[str] | SparkCkptError]]:
    """State files of each checkpoint, relative to `ckpt`, even if missing; or the error that prevents reading them. All
    `_metadata` are read concurrently."""
    found = storage.read_many([in_location(record.metadata.path) for record in records])
    for record in records:
        name = in_location(record.metadata.path)
        try:
            metadata = _decoded(record, storage.describe(name), found.pop(name))
            yield record, _of_record(storage, record, partial(state_files_of, metadata))
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
    """Content of a `_metadata`, without a check of its state files.

    Raises:
        DamagedCheckpointError: not written by spark-ckpt, or corrupt.
        UnsupportedFormatError: a later release wrote it with features that this release would misread.
    """
    batch, table = _of_record(storage, record, lambda: decompose(metadata))
    history = _of_record(storage, record, lambda: history_of(metadata) or ())
    return CheckpointState(batch.version, record, batch, table, history)


def _of_record(storage: Storage, record: CheckpointRecord, read: Callable[[], _Content]) -> _Content:
    """What `read` finds in the `_metadata` of a record; its errors name the file."""
    path = storage.describe(in_location(record.metadata.path))
    try:
        return read()
    except UnsupportedFormatError as e:
        raise UnsupportedFormatError(path, e.needs, e.features) from e
    except SparkCkptError as e:
        raise _damaged(record, path, str(e)) from e


def list_shared(storage: Storage) -> Request[Sequence[FileInfo]]:
    """Begin to list the state files. A listing that begins after a record was read has all files of its checkpoint."""
    return storage.begin(lambda: storage.list(in_location(SHARED)))


def check_files(
    storage: Storage, record: CheckpointRecord, table: ChainTable, listing: Request[Sequence[FileInfo]] | None = None
) -> None:
    """Check that all state files of a checkpoint exist with their recorded sizes.

    Args:
        storage: storage of the checkpoint location.
        record: record of the checkpoint.
        table: its chains.
        listing: listing of the state files, if it has begun.

    Raises:
        DamagedCheckpointError: a file is missing or has another size.
        StorageError: the storage does not answer.
    """
    for path, reason in damaged_files(storage, table, listing).items():
        raise _damaged(record, storage.describe(in_location(path)), reason)


def damaged_files(
    storage: Storage, table: ChainTable, listing: Request[Sequence[FileInfo]] | None = None
) -> dict[str, str]:
    """State files that are missing or have another size, relative to `ckpt`, with the damage of each.

    Raises:
        StorageError: the storage does not answer.
    """
    needed = {entry.path: entry.file_size for entry in all_entries(table) if entry.path is not None}
    if not needed:
        return {}
    found = (listing or list_shared(storage)).result()
    there: Mapping[str, int] = {f"{SHARED}/{file.name}": file.size for file in found}
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
    """Remedy for a damaged checkpoint, given the newest intact one."""
    if good is None:
        return NO_OTHER_IS_WHOLE
    return (
        f"The newest intact checkpoint is {good.id}, of batch {good.batch_id}: restore the file from a backup, or go "
        f"back to it and start the query again: spark-ckpt rollback {storage.location} --id {good.id}"
    )


def version_not_found(
    storage: Storage, version: int, retained: Sequence[CheckpointRecord], hint: str = ""
) -> VersionNotFoundError:
    """Error about a version without a checkpoint. The rollback that it names is one that Spark's logs permit.

    Args:
        storage: storage of the checkpoint location.
        version: requested version.
        retained: all retained checkpoints, ascending.
        hint: remedy that replaces the usual one.

    Raises:
        StorageError: Spark's logs cannot be listed.
    """
    batches = SparkBatches.of(SparkLog(storage))
    if retained and not hint and batches.started:
        there = [record.id for record in retained if batches.can_follow(record.batch_id)]
        hint = go_back(storage.location, there[-1]) if there else NO_WAY_BACK
    return VersionNotFoundError(storage.location, version, {record.id: record.version for record in retained}, hint)


def _damaged(record: CheckpointRecord, path: str, reason: str) -> DamagedCheckpointError:
    return DamagedCheckpointError(path, record.id, reason, None, "")
