"""Rollback of a query to an earlier checkpoint. Later files are moved to a directory; none is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError
from spark_ckpt.location.driver_liveness import check_fenced
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.operations.errors import RollbackRefusedError
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.rollback import Rollback, checkpoint_in, claim_and_move, later_checkpoints, planned_rollback
from spark_ckpt.recovery.verdict import verify_checkpoint
from spark_ckpt.spark_files.logs import BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.storage import Storage


def roll_back(
    storage: Storage,
    checkpoint_id: int,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Rollback:
    """Makes a checkpoint the newest one: at its next start the query resumes after the batch of the checkpoint.

    The checkpoint is read in full first. Then the location is claimed and Spark's logs are fenced: a running driver
    completes no checkpoint and writes no entry. After a failed rollback no query starts until it is repeated.

    Args:
        storage: storage of the checkpoint location.
        checkpoint_id: the checkpoint.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running here, or may be running elsewhere without the fence of
            Spark's logs.
        dry_run: True to check everything and change nothing.
        clock: source of time.
        progress: called while the checkpoint is read.

    Raises:
        CheckpointNotFoundError: no such checkpoint.
        LocationInUseError: see `force`.
        DamagedCheckpointError: the checkpoint is damaged.
        RollbackRefusedError: Spark's logs lack entries that a start after its batch needs.
        SettingError: a setting is invalid.
        DamagedRecordError: records contradict each other. Damaged ones are moved with the later files.
        StorageError: the location cannot be read or changed.
    """
    clock = clock or SystemClock()
    with opened_store(storage, settings, "rollback", clock) as (store, owner):
        damaged = _recover(store)
        record = checkpoint_in(storage, store, checkpoint_id)
        if not force:
            check_fenced(storage.location, store)
        _check_logs(storage, store, record)
        _check_whole(storage, record, progress)
        if dry_run:
            plan = planned_rollback(storage, record, later_checkpoints(store, record), clock)
            return replace(plan, moved=(*plan.moved, *damaged))
        return claim_and_move(Publisher(storage, store, owner), checkpoint_id, clock, damaged)


def _recover(store: CompletedCheckpointStore) -> list[str]:
    """Reads the log without damaged records, and returns the files of those."""
    try:
        store.recover()
    except DamagedRecordError:
        if not (damaged := store.leave_out_damaged()):
            raise
        store.recover()
        return damaged
    return []


def _check_whole(storage: Storage, record: CheckpointRecord, progress: Progress) -> None:
    verdict = verify_checkpoint(storage, record, progress=progress)
    if not verdict.is_whole:
        damage = verdict.damages[0]
        way_out = f"Find an undamaged one with: spark-ckpt verify {storage.location} --all"
        raise DamagedCheckpointError(damage.path, record.id, damage.reason, None, way_out)


def _check_logs(storage: Storage, store: CompletedCheckpointStore, record: CheckpointRecord) -> None:
    batches, batch = SparkBatches.of(SparkLog(storage)), record.batch_id
    if batches.can_follow(batch):
        return
    others = [other for other in store.all() if batches.can_follow(other.batch_id)]
    way_back = (
        f"Go back to checkpoint {others[-1].id}, of batch {others[-1].batch_id}: "
        f"spark-ckpt rollback {storage.location} --id {others[-1].id}"
        if others
        else "The query can go back to none of its checkpoints: start it with a new checkpoint location"
    )
    if batch > batches.last_committed:
        reason = f"Spark has not committed batch {batch} and repeats it at the next start. {way_back}"
    elif lost := _lost_entries(batches, batch):
        reason = (
            f"a start after its batch reads {' and '.join(lost)}, which Spark has not purged and which {_are(lost)} "
            f"missing. Restore {'it' if len(lost) == 1 else 'them'} from a copy. Without one: {way_back}"
        )
    else:
        reason = (
            f"Spark has purged its log entries of batch {batch}; spark.sql.streaming.minBatchesToRetain keeps more. "
            f"{way_back}"
        )
    raise RollbackRefusedError(storage.location, record.id, reason)


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _lost_entries(batches: SparkBatches, batch: int) -> list[str]:
    """Entries that a start after a batch reads, and that are missing although Spark still has those of earlier batches,
    or would never purge them: of the last two batches. Spark purges the oldest entries of both logs together."""
    oldest = min((*batches.started, *batches.committed), default=0)
    newest = max((*batches.started, *batches.committed), default=0)
    needed = [(BatchLog.OFFSETS, max(0, batch - 1)), (BatchLog.OFFSETS, batch), (BatchLog.COMMITS, batch)]
    there = {BatchLog.OFFSETS: batches.started, BatchLog.COMMITS: batches.committed}
    return [
        entry_name(log, number)
        for log, number in dict.fromkeys(needed)
        if number not in there[log] and (number >= oldest or number >= newest - 1)
    ]
