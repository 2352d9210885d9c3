"""Copies of one checkpoint and all it needs, made while its query may run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spark_ckpt.checkpoint.chains import ChainTable, all_entries
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import state_of
from spark_ckpt.checkpoint.publish import create_file
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import DamagedCheckpointError, StateFileNotFoundError
from spark_ckpt.location.listing import is_retained
from spark_ckpt.location.savepoint import is_savepoint
from spark_ckpt.metadata import CheckpointMetadata
from spark_ckpt.operations.damage import Damage
from spark_ckpt.operations.errors import SubsumedDuringCopyError, TargetNotEmptyError
from spark_ckpt.operations.snapshot import Snapshot, find_record, read_snapshot
from spark_ckpt.operations.verify import Progress
from spark_ckpt.operations.verify_spark_logs import check_agreement
from spark_ckpt.operations.verify_state import check_state
from spark_ckpt.spark_files.logs import (
    QUERY,
    SOURCES,
    STATE,
    BatchLog,
    SparkLog,
    entry_name,
    operator_directory,
)
from spark_ckpt.storage import MOST_READINGS, Storage, copy_file, until_stable


@dataclass(frozen=True, slots=True)
class CheckpointCopy:
    """A copy of a checkpoint, as a savepoint or as a new checkpoint location.

    Args:
        source: the location or savepoint it was made from.
        target: where it is.
        dry_run: True if nothing was to be written.
        checkpoint: the checkpoint.
        query_id: the query that the copy is of.
        files: files of the copy.
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
    """Copies files from one place to the same names in another, each once.

    Args:
        source: a checkpoint location, or a savepoint.
        target: the other place.
        progress: called after each state file with the bytes done, and of how many.
    """

    def __init__(self, source: Storage, target: Storage, progress: Progress) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._sizes: dict[str, int] = {}

    def check_target(self) -> None:
        """Makes sure that the target is new.

        Raises:
            TargetNotEmptyError: there is something.
            StorageError: the storage does not say.
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
        """Creates a file of the copied checkpoint, as every checkpoint's is created.

        Raises:
            TargetNotEmptyError: another process has created one there meanwhile.
            StorageError: it cannot be created, or the storage does not say whether it was.
        """
        if not create_file(self._target, name, data):
            raise TargetNotEmptyError(self._target.location)
        self._sizes[name] = len(data)

    def copy(self, name: str) -> None:
        """Copies a file, unless it was copied before: names are not used twice for other content.

        Raises:
            StateFileNotFoundError: the source has no such file.
            StorageError: it cannot be copied.
        """
        if name not in self._sizes:
            self._sizes[name] = copy_file(self._source, name, self._target, name)

    def copy_checkpoint(self, checkpoint_id: int | None) -> Snapshot:
        """Copies the state files of a checkpoint.

        If the checkpoint is subsumed meanwhile, the newest one then, which shares most of its files.

        Args:
            checkpoint_id: which one of a location; by default the newest that Spark has committed.

        Raises:
            SubsumedDuringCopyError: checkpoints are subsumed faster than they can be copied.
            CheckpointNotFoundError: the checkpoint is not there, or not any more.
            DamagedCheckpointError: it is damaged.
            SparkCkptError: as in `find_record`.
        """
        for _ in range(MOST_READINGS):
            record = find_record(self._source, checkpoint_id)
            try:
                snapshot = read_snapshot(self._source, record)
                self._copy_state(snapshot.state().table)
            except (DamagedCheckpointError, StateFileNotFoundError) as e:
                if is_savepoint(self._source) or is_retained(self._source, record):
                    raise _damaged(record, Damage.of(e.path, e)) from e
                continue
            # Whether Spark counts these states, as long as they are those of its logs.
            for damage in check_agreement(self._source, snapshot.state(), snapshot.metadata, is_newest_of_version=True):
                raise _damaged(record, damage)
            return snapshot
        raise SubsumedDuringCopyError(self._source.location, MOST_READINGS)

    def copy_spark_files(self, snapshot: Snapshot) -> None:
        """Copies what sources and operators keep, and makes the folders of the partitions.

        Raises:
            StorageError: something cannot be copied, or the source does not stand still.
        """

        def copy_once() -> bool | None:
            names = _spark_files(self._source, snapshot.record.batch_id)
            try:
                for name in names:
                    self.copy(name)
            except StateFileNotFoundError:
                return None  # a source has compacted its log
            # A listing of a directory that changes need not have all that was there before what it has.
            return names == _spark_files(self._source, snapshot.record.batch_id) or None

        until_stable(copy_once, self._source.describe(SOURCES))
        batch = snapshot.state().batch
        assert batch is not None
        for store in batch.stores:
            for partition in range(store.parallelism):
                self._target.make_directory(f"{operator_directory(store.operator_id)}/{partition}")

    def copy_logs(self, batch_id: int) -> None:
        """Copies what Spark needs to go on after a batch, its commit last: Spark starts no query without it.

        Raises:
            StorageError: something cannot be copied.
        """
        for name in _log_entries(batch_id):
            self.copy(name)

    def check_state(self, snapshot: Snapshot, metadata: CheckpointMetadata) -> None:
        """Reads back the state that was written, all of it.

        Args:
            snapshot: what was copied.
            metadata: the `_metadata` of the copy, with the paths that it has in a location.

        Raises:
            DamagedCheckpointError: it is damaged, and so was what was copied.
            StorageError: it cannot be read.
        """
        state = state_of(self._target, snapshot.record, metadata)
        for damage in check_state(self._target, state, snapshot.path).damages:
            way_out = (
                f"This is a copy, which is as damaged as the original in {self._source.location}. Delete "
                f"{self._target.location}, which is not complete, and copy another checkpoint"
            )
            raise DamagedCheckpointError(damage.path, snapshot.record.id, damage.reason, None, way_out)

    def result(self, snapshot: Snapshot, query_id: str, planned: Mapping[str, int] | None = None) -> CheckpointCopy:
        """The copy as it is, or as it is planned.

        Args:
            snapshot: what was copied.
            query_id: the query that the copy is of.
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
        names = [*_spark_files(self._source, snapshot.record.batch_id), QUERY, *_log_entries(snapshot.record.batch_id)]
        sizes = {**_state_files(snapshot.state().table), **_sizes(self._source, names)}
        sizes |= {name: len(data) for name, data in written.items()}
        return self.result(snapshot, query_id, sizes)

    def _copy_state(self, table: ChainTable) -> None:
        needed = _state_files(table)
        of, done = sum(needed.values()), 0
        for name, size in needed.items():
            self.copy(name)
            done += size
            self._progress(done, of)
        for name in self._sizes.keys() - needed:  # those of a checkpoint that was subsumed meanwhile
            self._target.delete(name)
            del self._sizes[name]


def _state_files(table: ChainTable) -> dict[str, int]:
    """Names and sizes of the state files, relative to the location."""
    return {in_location(entry.path): entry.file_size for entry in all_entries(table) if entry.path is not None}


def _log_entries(batch_id: int) -> list[str]:
    """The entries of Spark's logs that a start after a batch reads, the commit last."""
    offsets = [entry_name(BatchLog.OFFSETS, batch) for batch in (batch_id - 1, batch_id) if batch >= 0]
    return [*offsets, entry_name(BatchLog.COMMITS, batch_id)]


def _sizes(storage: Storage, names: Iterable[str]) -> dict[str, int]:
    """The lengths of files, by one listing for each directory."""
    by_directory: dict[str, list[str]] = {}
    for name in names:
        by_directory.setdefault(name.rpartition("/")[0], []).append(name)
    sizes = {}
    for directory, wanted in by_directory.items():
        there = {f"{directory}/{file.name}" if directory else file.name: file.size for file in storage.list(directory)}
        sizes.update({name: there.get(name, 0) for name in wanted})
    return sizes


def _spark_files(storage: Storage, batch_id: int) -> list[str]:
    """The files of sources and operators that hold at a batch."""
    log = SparkLog(storage)
    later = {name for operator_id in log.operators() for name in log.later_metadata(operator_id, batch_id)}
    return [name for name in (*_tree(storage, SOURCES), *_tree(storage, STATE)) if name not in later]


def _tree(storage: Storage, directory: str) -> Iterator[str]:
    """All files below a directory but the hidden ones: checksums, which Hadoop makes anew, and temporary files."""
    for entry in sorted(storage.list(directory), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_directory:
            yield from _tree(storage, f"{directory}/{entry.name}")
        else:
            yield f"{directory}/{entry.name}"


def _damaged(record: CheckpointRecord, damage: Damage) -> DamagedCheckpointError:
    return DamagedCheckpointError(damage.path, record.id, damage.reason, None, "Copy another checkpoint")
