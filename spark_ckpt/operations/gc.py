"""Garbage collection: removal of orphans from a location. Its query may be running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from spark_ckpt.checkpoint.chains import files_of
from spark_ckpt.checkpoint.compose import decompose
from spark_ckpt.checkpoint.layout import CKPT, checkpoint_of_directory, in_location
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import LOG, CheckpointRecord, Scan
from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError
from spark_ckpt.location.listing import list_completed
from spark_ckpt.location.orphans import Leftover, list_all, list_temporaries, select_orphans
from spark_ckpt.location.tags import Tags
from spark_ckpt.metadata import METADATA_FILE_NAME, loads
from spark_ckpt.operations.errors import CollectionRefusedError
from spark_ckpt.progress import Progress
from spark_ckpt.spark_files.evolved import evolutions
from spark_ckpt.storage import Storage, files_below, until_stable

DEFAULT_GRACE_SECONDS = 24 * 3600.0
"""Minimum age of a deleted orphan, relative to the newest checkpoint. A base that an executor has written belongs to a
later batch, and the query may be idle for days before it."""


@dataclass(frozen=True, slots=True)
class EarlierState:
    """State files of the earlier provider.

    Args:
        provider: short name of the provider: `HDFS` or `RocksDB`.
        files: the files, by path relative to the checkpoint location.
        directories: their directories below those of the partitions, deepest first.
    """

    provider: str
    files: tuple[Leftover, ...]
    directories: tuple[str, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


class EarlierStates(Protocol):
    """State files of providers that queries were imported from; `spark_ckpt.migrate` knows them."""

    def find(self, storage: Storage) -> EarlierState | None:
        """The earlier provider's state files, if nothing needs them any more; None without an import."""

    def delete(self, storage: Storage, earlier: EarlierState, progress: Callable[[], None]) -> list[tuple[str, str]]:
        """Deletes them, and returns the path and reason of each failed deletion. The query may be running."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Result of a garbage collection.

    Args:
        location: the checkpoint location.
        dry_run: True if nothing was deleted.
        orphans: unreferenced files and directories, by path.
        failed: path and reason of each failed deletion.
        foreign: files that spark-ckpt did not write, by path; never deleted.
        earlier: state files of the provider that the query was imported from; None if there are none, or if the import
            can still be undone.
    """

    location: str
    dry_run: bool
    orphans: tuple[Leftover, ...]
    failed: tuple[tuple[str, str], ...] = ()
    foreign: tuple[Leftover, ...] = ()
    earlier: EarlierState | None = None

    @property
    def size(self) -> int:
        """Bytes of all orphans."""
        return sum(orphan.size for orphan in self.orphans)


def collect_garbage(
    storage: Storage,
    *,
    grace_seconds: float = DEFAULT_GRACE_SECONDS,
    dry_run: bool = False,
    earlier_states: EarlierStates | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Collection:
    """Deletes files below `ckpt` that no completed checkpoint refers to, and state files of an earlier provider. Files
    of Spark that an evolution of the query has replaced go with the last checkpoint from before it.

    Safe while the query runs, even after a long idle time: the files of a pending checkpoint are written after the
    newest complete one, or shortly before. So age counts from that checkpoint, not from now. Both times come from the
    storage, so no skewed clock of a driver or of this process makes a file look older. Only kinds of files that
    spark-ckpt writes are considered.

    Args:
        storage: storage of the checkpoint location.
        grace_seconds: minimum age of an orphan relative to the newest checkpoint, or to the newest file if there is no
            checkpoint. 0 deletes every orphan; no query may be running then.
        dry_run: True to delete nothing.
        earlier_states: finds and deletes state files of the provider that the query was imported from; None to leave
            them alone.
        clock: second source of time; orphans younger than the grace time by this clock also stay.
        progress: called after each deletion with the number of deletions and the total.

    Raises:
        CollectionRefusedError: a checkpoint cannot be read, so its files would count as orphans.
        LinkedStateError: a symbolic link below `ckpt`.
        ModificationTimeUnknownError: the storage reports no modification time of an orphan.
        DamagedRecordError, StorageError: the log cannot be read. Nothing was deleted in any of these cases.
    """
    now_ms = (clock or SystemClock()).now_ms()
    # Listed before the log is read: the record of a checkpoint that completes meanwhile must not make its files old.
    log_ms = max((file.modified_ms or 0 for file in storage.list(LOG)), default=0)
    log = list_completed(storage)
    # Listed before the log is read again: the listing lacks files of a checkpoint that completes in between.
    listing = list_all(storage)
    there = [*listing.state, *list_temporaries(storage)]
    schemas = _unneeded_schemas(storage, log)
    used = references(storage, there, log)
    before_ms = min(now_ms, _newest_ms(there, log, log_ms)) - int(grace_seconds * 1000) if grace_seconds else None
    orphans = sorted([*select_orphans(there, used, before_ms), *schemas], key=lambda orphan: orphan.path)
    if orphans and not dry_run:
        storage.sync_deletions(LOG)  # a power loss must not bring back a record without its files
    earlier = earlier_states.find(storage) if earlier_states else None
    total = len(orphans) + (len(earlier.files) if earlier else 0)
    failed = [] if dry_run else _delete(storage, orphans, lambda done: progress(done, total))
    if earlier_states and earlier and not dry_run:
        numbers = count(len(orphans) + 1)
        failed += earlier_states.delete(storage, earlier, lambda: progress(next(numbers), total))
    foreign = sorted(listing.foreign, key=lambda other: other.path)
    return Collection(storage.location, dry_run, tuple(orphans), tuple(failed), tuple(foreign), earlier)


def _unneeded_schemas(storage: Storage, log: Scan) -> Iterator[Leftover]:
    """Files that evolutions of the query have replaced, once every checkpoint from before them is gone."""
    if not (found := list(evolutions(storage))):
        return
    oldest = min((record.batch_id for record in (*log.records, *Tags(storage).records().values())), default=-1)
    for replaced in found:
        if replaced.batch_id < oldest:
            for name in files_below(storage, replaced.root):
                yield Leftover(name.removeprefix(f"{CKPT}/"), storage.size(name), None)


def _newest_ms(there: Sequence[Leftover], log: Scan, log_ms: int) -> int:
    """Time of the newest checkpoint by the storage's clock; without a checkpoint, of the newest file.

    Args:
        there: the files below `ckpt`.
        log: the log, read before the listing.
        log_ms: time of the newest file of the log before that, in milliseconds since 1970 UTC.

    Returns:
        Milliseconds since 1970 UTC; 0 if the storage reports none.
    """
    written = {leftover.path: leftover.modified_ms or 0 for leftover in there}
    if log.records:
        times = [written[record.metadata.path] for record in log.records if record.metadata.path in written]
        return times[-1] if times else 0
    return max([*written.values(), log_ms])


def references(storage: Storage, there: Sequence[Leftover], found: Scan) -> set[str]:
    """The files that checkpoints refer to, `_metadata` included, relative to `ckpt`. Reads until two readings agree.

    A `_metadata` with an id above the log's last may still be complete: the files lag behind a log in ZooKeeper. So its
    references count too.

    Args:
        storage: storage of the checkpoint location.
        there: the listed files.
        found: the log, read before the listing.

    Raises:
        CollectionRefusedError, DamagedRecordError, StorageError: as in `collect_garbage`.
    """

    def read_once() -> set[str] | None:
        nonlocal found
        before, refused = found, None
        try:
            used = _references(storage, found, there)
        except CollectionRefusedError as e:
            refused = e  # the owner may be subsuming that checkpoint right now
        found = list_completed(storage)
        if (found.records, found.next_id) != (before.records, before.next_id):
            return None
        if refused is not None:
            raise refused
        return used

    return until_stable(read_once, storage.describe(CKPT))


def _references(storage: Storage, found: Scan, there: Sequence[Leftover]) -> set[str]:
    metadata = {leftover.path for leftover in there if leftover.path.endswith(f"/{METADATA_FILE_NAME}")}
    for damaged in found.damaged:
        # Without a `_metadata` the record refers to nothing.
        if any(_checkpoint_of(path) == damaged.checkpoint_id for path in metadata):
            raise CollectionRefusedError(storage.location, damaged.checkpoint_id, damaged)
    used: set[str] = set()
    for record in (*found.records, *Tags(storage).records().values()):
        used |= {record.metadata.path, *_files_of(storage, record)}
    for path in metadata:
        checkpoint_id = _checkpoint_of(path)
        if checkpoint_id >= found.next_id:
            used |= {path, *_files_named_in(storage, path, checkpoint_id)}
    return used


def _files_of(storage: Storage, record: CheckpointRecord) -> set[str]:
    """The state files of a completed checkpoint. All must exist."""
    try:
        return read_checkpoint(storage, record).files()
    except SparkCkptError as e:
        raise CollectionRefusedError(storage.location, record.id, e) from e


def _files_named_in(storage: Storage, path: str, checkpoint_id: int) -> set[str]:
    """The state files that a `_metadata` refers to, existing or not."""
    try:
        _, table = decompose(loads(storage.read(in_location(path)), storage.describe(in_location(path))))
    except StateFileNotFoundError:
        return set()
    except SparkCkptError as e:
        raise CollectionRefusedError(storage.location, checkpoint_id, e) from e
    return files_of(table)


def _checkpoint_of(path: str) -> int:
    checkpoint_id = checkpoint_of_directory(path.partition("/")[0])
    assert checkpoint_id is not None  # `list_state` looks into no other directories
    return checkpoint_id


def _delete(storage: Storage, orphans: Sequence[Leftover], progress: Callable[[int], None]) -> list[tuple[str, str]]:
    failed = []
    for done, orphan in enumerate(orphans, 1):
        directory = orphan.path if orphan.is_directory else orphan.path.rpartition("/")[0]
        try:
            if not orphan.is_directory:
                storage.delete(in_location(orphan.path))
            if checkpoint_of_directory(directory) is not None:
                storage.remove_empty(in_location(directory))
        except SparkCkptError as e:
            failed.append((orphan.path, str(e)))
        progress(done)
    return failed
