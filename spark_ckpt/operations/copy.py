"""Copies of one checkpoint with everything it needs. The query may be running."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.chains import ChainTable, all_entries
from spark_ckpt.checkpoint.layout import CKPT, in_location
from spark_ckpt.checkpoint.load import state_of
from spark_ckpt.checkpoint.publish import create_file
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import DamagedCheckpointError, StateFileNotFoundError
from spark_ckpt.location.listing import is_retained
from spark_ckpt.location.savepoint import is_savepoint
from spark_ckpt.location.snapshot import Snapshot, find_record, read_snapshot
from spark_ckpt.metadata import CheckpointMetadata
from spark_ckpt.operations.errors import SubsumedDuringCopyError, TargetNotEmptyError
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.recovery.spark_logs_check import check_agreement, recorded_offsets
from spark_ckpt.recovery.state_check import check_state
from spark_ckpt.spark_files.delta_schemas import SCHEMA_LOG
from spark_ckpt.spark_files.evolved import files_at
from spark_ckpt.spark_files.logs import (
    QUERY,
    SOURCES,
    STATE,
    BatchLog,
    SparkLog,
    entry_name,
    make_partitions,
)
from spark_ckpt.storage import MAX_READINGS, Storage, copy_file, files_below, until_stable

_OTHERS = (CKPT, SOURCES, STATE, *(log.value for log in BatchLog))
"""Directories of a checkpoint location without files of Delta, except for `sources`."""


@dataclass(frozen=True, slots=True)
class CheckpointCopy:
    """A copy of a checkpoint, as a savepoint or as a new checkpoint location.

    Args:
        source: the source location or savepoint.
        target: location of the copy.
        dry_run: True if nothing was written.
        checkpoint: the checkpoint.
        query_id: query id of the copy.
        files: number of files in the copy.
        size: their bytes.
    """

    source: str
    target: str
    dry_run: bool
    checkpoint: CheckpointRecord
    query_id: str
    files: int
    size: int


class Copier:
    """Copies files to the same names in another directory, each once.

    Args:
        source: a checkpoint location, or a savepoint.
        target: the directory of the copy.
        progress: called after each state file with the bytes copied and the total.
    """

    def __init__(self, source: Storage, target: Storage, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._sizes: dict[str, int] = {}

    def check_target(self) -> None:
        """Checks that the target is empty.

        Raises:
            TargetNotEmptyError: it is not.
            StorageError: it cannot be listed.
        """
        if self._target.list(""):
            raise TargetNotEmptyError(self._target.location)

    def write(self, name: str, data: bytes) -> None:
        """Writes a file of the target.

        Raises:
            StorageError: it cannot be written.
        """
        self._target.write_atomic(name, data)
        self._sizes[name] = len(data)

    def create(self, name: str, data: bytes) -> None:
        """Creates a file of the copied checkpoint exclusively, as for every checkpoint.

        Raises:
            TargetNotEmptyError: another process has created the file meanwhile.
            StorageError: it cannot be created, or the outcome is unknown.
        """
        if not create_file(self._target, name, data):
            raise TargetNotEmptyError(self._target.location)
        self._sizes[name] = len(data)

    def copy(self, name: str, source: Storage | None = None) -> None:
        """Copies a file unless it was copied before: a name never gets new content.

        Args:
            name: name of the file.
            source: storage of the file; by default that of all files.

        Raises:
            StateFileNotFoundError: the source has no such file.
            StorageError: it cannot be copied.
        """
        if name not in self._sizes:
            self._sizes[name] = copy_file(source or self._source, name, self._target, name)

    def copy_checkpoint(self, checkpoint_id: int | None) -> Snapshot:
        """Copies the state files of a checkpoint.

        If the checkpoint is subsumed during the copy, the newest one is copied instead; it shares most of the files.

        Args:
            checkpoint_id: the checkpoint of a location; by default the newest that Spark has committed.

        Raises:
            SubsumedDuringCopyError: checkpoints are subsumed faster than they can be copied.
            CheckpointNotFoundError: no such checkpoint, or no longer.
            DamagedCheckpointError: it is damaged.
            SparkCkptError: as in `find_record`.
        """
        for _ in range(MAX_READINGS):
            record = find_record(self._source, checkpoint_id)
            try:
                snapshot = read_snapshot(self._source, record)
                self._copy_state(snapshot.state().table)
            except (DamagedCheckpointError, StateFileNotFoundError) as e:
                if is_savepoint(self._source) or is_retained(self._source, record):
                    raise _damaged(record, Damage.of(e.path, e)) from e
                continue
            # Checked here, while Spark's logs still match these states.
            for damage in check_agreement(
                self._source, snapshot.state(), snapshot.metadata, is_newest_of_version=True, needs_settings=False
            ):
                raise _damaged(record, damage)
            return snapshot
        raise SubsumedDuringCopyError(self._source.location, MAX_READINGS)

    def copy_spark_files(self, snapshot: Snapshot) -> None:
        """Copies the files of sources and operators, and creates the directories of the partitions.

        Raises:
            StorageError: a file cannot be copied, or the files of the source keep changing.
        """

        batch = snapshot.state().batch
        assert batch is not None
        copy_spark_files(self._source, self._target, batch, self.copy)

    def copy_logs(self, snapshot: Snapshot) -> None:
        """Copies the log entries that a start after a checkpoint needs, the commit last: without it Spark starts no
        query. Offsets of the batch are those in the checkpoint.

        Raises:
            StorageError: an entry cannot be copied.
        """
        batch_id = snapshot.record.batch_id
        for name in log_entries(batch_id):
            offsets = recorded_offsets(snapshot.metadata) if name == entry_name(BatchLog.OFFSETS, batch_id) else None
            if offsets is None:
                self.copy(name)
            else:
                self.write(name, offsets)

    def check_state(self, snapshot: Snapshot, metadata: CheckpointMetadata) -> None:
        """Reads back all copied state.

        Args:
            snapshot: the copied checkpoint.
            metadata: the `_metadata` of the copy, with paths as in a location.

        Raises:
            DamagedCheckpointError: the copy is damaged, and so is the original.
            StorageError: the copy cannot be read.
        """
        state = state_of(self._target, snapshot.record, metadata)
        for damage in check_state(self._target, state, snapshot.path).damages:
            way_out = (
                f"This copy is as damaged as the original in {self._source.location}. Delete the incomplete "
                f"{self._target.location}, and copy another checkpoint"
            )
            raise DamagedCheckpointError(damage.path, snapshot.record.id, damage.reason, None, way_out)

    def result(self, snapshot: Snapshot, query_id: str, planned: Mapping[str, int] | None = None) -> CheckpointCopy:
        """The copy, completed or planned.

        Args:
            snapshot: the checkpoint.
            query_id: query id of the copy.
            planned: sizes of the files of a dry run.
        """
        source, target = self._source.location, self._target.location
        sizes = self._sizes if planned is None else planned
        dry_run = planned is not None
        return CheckpointCopy(source, target, dry_run, snapshot.record, query_id, len(sizes), sum(sizes.values()))

    def planned(self, snapshot: Snapshot, query_id: str, written: Mapping[str, bytes]) -> CheckpointCopy:
        """The copy that a dry run describes: state files, Spark's files, and the files made for the copy.

        Args:
            snapshot: the checkpoint.
            query_id: the query id of the copy.
            written: name and content of each file made for the copy.

        Raises:
            StorageError: the source cannot be listed.
        """
        batch_id = snapshot.record.batch_id
        source = files_at(self._source, batch_id)
        names = [*_spark_files(source, batch_id), QUERY, *log_entries(batch_id)]
        sizes = {**state_files(snapshot.state().table), **_sizes(source, names)}
        sizes |= {name: len(data) for name, data in written.items()}
        return self.result(snapshot, query_id, sizes)

    def _copy_state(self, table: ChainTable) -> None:
        needed = state_files(table)
        of, done = sum(needed.values()), 0
        for name, size in needed.items():
            self.copy(name)
            done += size
            self._progress(done, of)
        for name in self._sizes.keys() - needed:  # of a checkpoint subsumed during its copy
            self._target.delete(name)
            del self._sizes[name]


def copy_spark_files(
    location: Storage, target: Storage, batch: SparkBatch, copy: Callable[[str, Storage], None]
) -> None:
    """Copies the files of sources and operators valid at a batch, and creates the directories of the partitions.

    Args:
        location: a checkpoint location, or a savepoint.
        target: directory of the copy.
        batch: the batch.
        copy: copies a file of a storage, unless the copy has it.

    Raises:
        StorageError: a file cannot be copied, or the files of the source keep changing.
    """
    source = files_at(location, batch.batch_id)

    def copy_once() -> bool | None:
        names = _spark_files(source, batch.batch_id)
        try:
            for name in names:
                copy(name, source)
        except StateFileNotFoundError:
            return None  # a source has compacted its log
        # A listing of a changing directory may lack older entries than those it has.
        return names == _spark_files(source, batch.batch_id) or None

    until_stable(copy_once, location.describe(SOURCES))
    make_partitions(target, {store.operator_id: store.parallelism for store in batch.stores})


def state_files(table: ChainTable) -> dict[str, int]:
    """Names and sizes of the state files, relative to the location."""
    return {in_location(entry.path): entry.file_size for entry in all_entries(table) if entry.path is not None}


def log_entries(batch_id: int) -> list[str]:
    """The log entries that a start after a batch reads, the commit last."""
    offsets = [entry_name(BatchLog.OFFSETS, batch) for batch in (batch_id - 1, batch_id) if batch >= 0]
    return [*offsets, entry_name(BatchLog.COMMITS, batch_id)]


def _sizes(storage: Storage, names: Iterable[str]) -> dict[str, int]:
    """The sizes of files, from one listing per directory."""
    by_directory: dict[str, list[str]] = {}
    for name in names:
        by_directory.setdefault(name.rpartition("/")[0], []).append(name)
    sizes = {}
    for directory, wanted in by_directory.items():
        there = {f"{directory}/{file.name}" if directory else file.name: file.size for file in storage.list(directory)}
        sizes.update({name: there.get(name, 0) for name in wanted})
    return sizes


def _spark_files(storage: Storage, batch_id: int) -> list[str]:
    """The files of sources and operators valid at a batch."""
    log = SparkLog(storage)
    later = {name for operator_id in log.operators() for name in log.later_metadata(operator_id, batch_id)}
    return [name for name in (*files_of_sources(storage), *files_below(storage, STATE)) if name not in later]


def files_of_sources(storage: Storage) -> Iterator[str]:
    """The files of a query's sources: those below `sources`, and Delta's logs of a table's schemas.

    Raises:
        StorageError: a directory cannot be listed.
    """
    yield from files_below(storage, SOURCES)
    yield from _schema_logs(storage, "")


def _schema_logs(storage: Storage, directory: str) -> Iterator[str]:
    for entry in sorted(storage.list(directory), key=lambda entry: entry.name):
        path = f"{directory}/{entry.name}" if directory else entry.name
        if not entry.is_directory or entry.name.startswith(".") or entry.name in _OTHERS:
            continue
        yield from files_below(storage, path) if entry.name.startswith(SCHEMA_LOG) else _schema_logs(storage, path)


def _damaged(record: CheckpointRecord, damage: Damage) -> DamagedCheckpointError:
    return DamagedCheckpointError(damage.path, record.id, damage.reason, None, "Copy another checkpoint")
