"""Deletion of everything in a location but its newest checkpoint and that checkpoint's files."""

from __future__ import annotations

from dataclasses import dataclass

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import LOG, CheckpointRecord
from spark_ckpt.location.orphans import list_state, select_orphans
from spark_ckpt.location.savepoint import SAVEPOINT_RECORD
from spark_ckpt.location.tags import Tags
from spark_ckpt.operations.change import Change
from spark_ckpt.recovery.fence import fenced_logs
from spark_ckpt.recovery.rollback import ROLLBACK_DIR
from spark_ckpt.spark_files.evolved import forget_before
from spark_ckpt.storage import Storage, delete_tree, files_below


def delete_savepoint(storage: Storage) -> None:
    """Delete a savepoint, its record first, without which it is incomplete.

    Raises:
        StorageError: a file cannot be deleted.
    """
    storage.delete(SAVEPOINT_RECORD)
    storage.sync_deletions("")
    delete_tree(storage, "")


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge has deleted.

    Args:
        dropped: ids of the dropped checkpoints, ascending.
        deleted: names of the deleted files, relative to the location.
    """

    dropped: tuple[int, ...]
    deleted: tuple[str, ...]


def purge(change: Change, record: CheckpointRecord) -> Purge:
    """Drop all checkpoints but one, and delete what it does not need, with all that rollbacks have moved away.

    No query starts meanwhile, so no file is in use. If it is interrupted, the next command continues from the same
    checkpoint.

    Args:
        change: the change. If it was written, it has claimed the location.
        record: the checkpoint to retain, the newest one.

    Raises:
        FencedError: another driver has claimed the location.
        StorageError: a file cannot be deleted.
    """
    storage, store = change.storage, change.store
    if record == change.record:
        store.claim()
    dropped, deleted = [], []
    with fenced_logs(storage, store, record.batch_id, change.clock, change.operation, may_run=False) as fence:
        for other in [other for other in store.all() if other.id != record.id]:
            fence.check()
            store.subsume(other)
            dropped.append(other.id)
        for tag in Tags(storage).list():  # created since the start of the purge, which refuses earlier ones
            fence.check()
            Tags(storage).delete(tag)
        storage.sync_deletions(LOG)  # a power loss must not bring back a record without its files
        used = {record.metadata.path, *read_checkpoint(storage, record).files()}
        orphans = select_orphans(list_state(storage), used)
        names = [in_location(orphan.path) for orphan in orphans if not orphan.is_directory]
        # All of them: after a rollback over an evolution, their rows have types in which keys cannot be searched.
        names += files_below(storage, ROLLBACK_DIR, hidden=True)
        for name in names:
            fence.check()
            storage.delete(name)
            storage.remove_empty(name.rpartition("/")[0])
            deleted.append(name)
        fence.check()
        forget_before(storage, record.batch_id)
    return Purge(tuple(dropped), tuple(deleted))
