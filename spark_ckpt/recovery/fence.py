"""A rollback beside an earlier driver that may still run: it writes no more entries and drops no checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from spark_ckpt.checkpoint.load import load_checkpoint
from spark_ckpt.checkpoint.publish import Publisher, checkpoint_of_operation, inline_state_in_file, with_chains
from spark_ckpt.clock import Clock
from spark_ckpt.completed import (
    CheckpointRecord,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    RecordFiles,
)
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.location.errors import CheckpointNotFoundError
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import BatchLog, SparkLog, entry_name
from spark_ckpt.spark_files.rollbacks import ROLLBACK, Rollbacks, begin, finish
from spark_ckpt.storage import Storage

GRACE_SECONDS = 20.0
"""Time between the marker of a rollback and the first move on storages without rename, if a driver may be running. It
looks for the marker up to 15 s before it writes an entry of Spark's logs there (`LogFence` in the shim)."""


@dataclass(frozen=True, slots=True)
class FencedLogs:
    """Spark's logs of a location while no driver writes to them. Taking entries out of them, and adding several, needs
    one, and only `fenced_logs` makes it.

    Args:
        storage: storage of the checkpoint location.
        store: its completed-checkpoint store, claimed.
        rollbacks: the rollback that keeps drivers out, and earlier ones that it finishes.
    """

    storage: Storage
    store: CompletedCheckpointStore
    rollbacks: Rollbacks

    def check(self) -> None:
        """Check that this process still owns the location. Call it before each change.

        Raises:
            FencedError: another driver has claimed the location.
            StorageError: the log of completed checkpoints cannot be read.
        """
        self.store.check_owner()

    def release(self) -> None:
        """Let queries start again, before an error of an operation that has changed nothing.

        Raises:
            StorageError: a note could not be written.
        """
        finish(self.storage, self.rollbacks)


@contextmanager
def fenced_logs(
    storage: Storage,
    store: CompletedCheckpointStore,
    batch_id: int,
    clock: Clock,
    operation: str = ROLLBACK,
    *,
    may_run: bool,
) -> Iterator[FencedLogs]:
    """Keeps drivers out of Spark's logs while a rollback moves entries or a change adds some, and earlier drivers for
    ever. After an error, no query starts until the operation is repeated, unless it calls `release`.

    With rename, Hadoop's file systems make an entry appear by renaming a temporary file, and a driver looks for the
    marker after it has created this file. So once the temporary files are deleted, no earlier driver writes an entry.
    Without rename, as on S3, the wait gives a driver time to finish the entry that it is writing.

    Args:
        storage: storage of the checkpoint location.
        store: its completed-checkpoint store, claimed.
        batch_id: batch to go back to, or the last batch before a change.
        clock: source of time.
        operation: `ROLLBACK`, or the command that changes the location.
        may_run: whether an earlier driver may be writing an entry.

    Yields:
        The fenced logs.

    Raises:
        FencedError: another driver has claimed the location. Nothing was moved, and queries can start.
        StorageError: a marker or a temporary file cannot be changed.
    """
    rollbacks = begin(storage, batch_id, operation)
    try:
        clock.sleep(GRACE_SECONDS if may_run and not storage.renames else 0.0)
        store.check_owner()
    except FencedError:
        finish(storage, rollbacks)
        raise
    for name in SparkLog(storage).temporary_files():
        storage.delete(name)
    yield FencedLogs(storage, store, rollbacks)
    finish(storage, rollbacks)


def check_not_subsumed(storage: Storage, store: CompletedCheckpointStore, record: CheckpointRecord) -> None:
    """Checks after a claim that no earlier driver has subsumed a checkpoint before it: its files may be deleted.

    Raises:
        CheckpointNotFoundError: its record is gone.
        StorageError: the record cannot be read.
    """
    if isinstance(store, FilesystemCompletedCheckpointStore) and RecordFiles(storage).read(record.id) is None:
        raise CheckpointNotFoundError(storage.location, record.id, sorted(r.id for r in store.all() if r != record))


def publish_again(publisher: Publisher, record: CheckpointRecord, clock: Clock) -> None:
    """Publishes a checkpoint once more, under a new id.

    An earlier driver may be about to subsume it, and stall before it deletes the record. It deletes no file of it, as
    it checks its claim in between.

    Raises:
        FencedError: another driver has claimed the location.
        DamagedCheckpointError: the checkpoint cannot be read.
        StorageError: the checkpoint cannot be written.
    """
    storage = publisher.storage
    state = load_checkpoint(storage, record, publisher.store.all())
    assert state.batch is not None
    name, now_ms = entry_name(BatchLog.OFFSETS, record.batch_id), clock.now_ms()
    data = storage.read(name)
    inline = inline_state_in_file(state.table)
    batch = with_chains(state.batch, state.table)
    offsets = OffsetEntry.decode(data, storage.describe(name))
    new = checkpoint_of_operation(batch, state.table, offsets, state.history, inline, now_ms, now_ms)
    publisher.publish(replace(new, spark_offsets=lambda: data), now_ms)
