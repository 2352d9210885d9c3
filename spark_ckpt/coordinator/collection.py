"""Removal of orphans from a location, whether its query runs or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord, Scan
from spark_ckpt.coordinator.chains import files_of
from spark_ckpt.coordinator.compose import decompose
from spark_ckpt.coordinator.directory import list_completed
from spark_ckpt.coordinator.layout import CKPT, checkpoint_of_directory, in_location
from spark_ckpt.coordinator.loading import read_checkpoint
from spark_ckpt.coordinator.orphans import Leftover, list_state, list_temporaries, select_orphans
from spark_ckpt.errors import CollectionRefusedError, SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.metadata import METADATA_FILE_NAME, loads
from spark_ckpt.storage import Storage

DEFAULT_GRACE_SECONDS = 24 * 3600.0
"""How old an orphan must be: a batch that takes longer may still refer to a file that it wrote before."""

_MOST_READINGS = 20


@dataclass(frozen=True, slots=True)
class Collection:
    """What a collection has found and done.

    Args:
        location: the checkpoint location.
        dry_run: whether nothing was to be deleted.
        orphans: what nothing refers to, by path.
        failed: the paths of those that could not be deleted, and why.
    """

    location: str
    dry_run: bool
    orphans: tuple[Leftover, ...]
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all orphans."""
        return sum(orphan.size for orphan in self.orphans)


def collect_garbage(
    storage: Storage,
    *,
    grace_seconds: float = DEFAULT_GRACE_SECONDS,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Collection:
    """Finds the files below `ckpt` that no completed checkpoint refers to, and deletes them.

    Safe while the query runs: what a pending checkpoint may refer to is younger than the grace time. Only files of a
    kind that spark-ckpt writes are looked at.

    Args:
        storage: of the checkpoint location.
        grace_seconds: how long ago an orphan must have been written; 0 for any, which no query may be running for.
        dry_run: whether to find only.
        clock: where time comes from; the storage's must not be far off.
        progress: called after each deletion with the number done, and of how many.

    Raises:
        CollectionRefusedError: a checkpoint cannot be read, so that its files would be taken for orphans.
        ModificationTimeUnknownError: the storage does not say how old an orphan is.
        CorruptRecordError, StorageError: the log cannot be read. Nothing was deleted in any of these cases.
    """
    now_ms = (clock or SystemClock()).now_ms()
    # Listed before the log is read: a file that a checkpoint brings between the two is not among them.
    there = [*list_state(storage), *list_temporaries(storage)]
    used = references(storage, there)
    before_ms = now_ms - int(grace_seconds * 1000) if grace_seconds else None
    orphans = sorted(select_orphans(there, used, before_ms), key=lambda orphan: orphan.path)
    failed = [] if dry_run else _delete(storage, orphans, progress)
    return Collection(storage.location, dry_run, tuple(orphans), tuple(failed))


def references(storage: Storage, there: Sequence[Leftover]) -> set[str]:
    """The files that checkpoints refer to, `_metadata` included, relative to `ckpt`. Reads until two readings agree.

    A `_metadata` with a number above the log's last may be complete all the same, if the log is in ZooKeeper and the
    files lag behind. So what it refers to counts as well.

    Args:
        storage: of the checkpoint location.
        there: what a listing has found.

    Raises:
        CollectionRefusedError, CorruptRecordError, StorageError: as in `collect_garbage`.
    """
    found = list_completed(storage)
    for _ in range(_MOST_READINGS):
        refused: CollectionRefusedError | None = None
        try:
            used = _references(storage, found, there)
        except CollectionRefusedError as e:
            refused = e  # the owner may just be dropping that checkpoint
        again = list_completed(storage)
        if (again.records, again.next_id) == (found.records, found.next_id):
            if refused is not None:
                raise refused
            return used
        found = again
    raise StorageError(storage.describe(CKPT), "read", f"it changed during each of {_MOST_READINGS} readings")


def _references(storage: Storage, found: Scan, there: Sequence[Leftover]) -> set[str]:
    metadata = {leftover.path for leftover in there if leftover.path.endswith(f"/{METADATA_FILE_NAME}")}
    for damaged in found.set_aside:
        # Where not even `_metadata` is there, nothing is referred to.
        if any(_checkpoint_of(path) == damaged.checkpoint_id for path in metadata):
            raise CollectionRefusedError(storage.location, damaged.checkpoint_id, damaged)
    used: set[str] = set()
    for record in found.records:
        used |= {record.metadata.path, *_files_of(storage, record)}
    for path in metadata:
        checkpoint_id = _checkpoint_of(path)
        if checkpoint_id >= found.next_id:
            used |= {path, *_files_named_in(storage, path, checkpoint_id)}
    return used


def _files_of(storage: Storage, record: CheckpointRecord) -> set[str]:
    """The state files of a completed checkpoint, all of which must be there."""
    try:
        return read_checkpoint(storage, record).files()
    except SparkCkptError as e:
        raise CollectionRefusedError(storage.location, record.id, e) from e


def _files_named_in(storage: Storage, path: str, checkpoint_id: int) -> set[str]:
    """The state files that a `_metadata` refers to, whether or not they are there."""
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


def _delete(
    storage: Storage, orphans: Sequence[Leftover], progress: Callable[[int, int], None]
) -> list[tuple[str, str]]:
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
        progress(done, len(orphans))
    return failed
