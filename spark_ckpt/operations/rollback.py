"""Rollback of a query to an earlier checkpoint. Later files are moved to a directory; none is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import (
    CheckpointRecord,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    JobStatus,
    Owner,
    RecordFiles,
    encode_record,
)
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, StateFileNotFoundError
from spark_ckpt.location.errors import CheckpointNotFoundError
from spark_ckpt.location.listing import checkpoint_directories
from spark_ckpt.location.orphans import list_state, select_orphans
from spark_ckpt.operations.driver_liveness import check_fenced, may_write, open_store
from spark_ckpt.operations.errors import RollbackRefusedError
from spark_ckpt.operations.rollback_fence import (
    GRACE_SECONDS,
    FencedLogs,
    check_not_subsumed,
    fenced_logs,
    publish_again,
)
from spark_ckpt.operations.verify import Progress, verify_checkpoint
from spark_ckpt.spark_files.logs import BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.storage import Storage, copy_file

ROLLBACK_DIR = "rolled-back"
"""Directory in a checkpoint location with one directory for each rollback."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """Result of a rollback, or of its dry run.

    Args:
        location: the checkpoint location.
        dry_run: True if nothing was changed.
        checkpoint: the checkpoint that the query resumes from.
        rollback_dir: directory of the moved files, relative to the location.
        batches: later batches that Spark had begun, ascending.
        checkpoints: ids of the later checkpoints, ascending.
        moved: names of the moved files, relative to the location; after a dry run the files to move, except state
            files.
        size: bytes of these files; 0 after a dry run.
    """

    location: str
    dry_run: bool
    checkpoint: CheckpointRecord
    rollback_dir: str
    batches: tuple[int, ...]
    checkpoints: tuple[int, ...]
    moved: tuple[str, ...]
    size: int = 0


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
    store, owner = open_store(storage, settings or {}, "rollback", clock)
    try:
        damaged = _recover(store)
        record = _find(storage, store, checkpoint_id)
        if not force:
            check_fenced(storage.location, store)
        _check_logs(storage, store, record)
        _check_whole(storage, record, progress)
        if dry_run:
            plan = _planned(storage, record, _later(store, record), clock)
            return replace(plan, moved=(*plan.moved, *damaged))
        return claim_and_move(storage, store, owner, checkpoint_id, clock, damaged)
    finally:
        store.shutdown(JobStatus.SUSPENDED)


def claim_and_move(
    storage: Storage,
    store: CompletedCheckpointStore,
    owner: Owner,
    checkpoint_id: int,
    clock: Clock,
    damaged: Sequence[str] = (),
    *,
    claim: Callable[[], None] | None = None,
    heartbeat: Callable[[], None] = lambda: None,
) -> Rollback:
    """Claims the location, fences Spark's logs, and moves all files later than a checkpoint, whatever drivers run.

    Every rollback is this function: a command's, and that of a query that finds damage.

    Args:
        storage: storage of the checkpoint location.
        store: its completed-checkpoint store, recovered.
        owner: owner of the claim.
        checkpoint_id: the checkpoint.
        clock: source of time.
        damaged: files of damaged records, which the store skips.
        claim: makes this process the owner; by default `claim_location`.
        heartbeat: called after each file.

    Raises:
        CheckpointNotFoundError: no such checkpoint any more.
        FencedError: another driver has claimed the location since.
        DamagedCheckpointError: the checkpoint cannot be read.
        StorageError: a file cannot be changed.
    """
    may_run = may_write(store.claims())
    if claim is None:
        claim_location(storage, store)
    else:
        claim()
    record = _find(storage, store, checkpoint_id)
    later = _later(store, record)
    if may_run:
        check_not_subsumed(storage, store, record)
        publish_again(storage, Publisher(storage, store, owner), record, clock)
    grace = GRACE_SECONDS if may_run and not storage.renames else 0.0
    with fenced_logs(storage, store, record.batch_id, clock, grace) as logs:
        return _move_later_batches(logs, record, clock, damaged, later, heartbeat)


def claim_location(storage: Storage, store: CompletedCheckpointStore) -> None:
    """Claims a location. A lost newest record counts: the earlier driver counts on from it, and its next id is taken.

    Args:
        storage: storage of the checkpoint location.
        store: its completed-checkpoint store, recovered.

    Raises:
        StorageError: the location cannot be claimed.
    """
    if isinstance(store, FilesystemCompletedCheckpointStore):
        last = SparkBatches.of(SparkLog(storage)).last_committed
        if all(record.batch_id < last for record in store.all()):
            store.recover()  # a record comes before the commit of its batch, so it is there now or lost
        if all(record.batch_id < last for record in store.all()):
            lost = max(checkpoint_directories(storage), default=0)
            store.counter.set_count(max(store.counter.get(), lost + 1))
    store.claim()


def _move_later_batches(
    logs: FencedLogs,
    record: CheckpointRecord,
    clock: Clock,
    damaged: Sequence[str],
    later: Sequence[CheckpointRecord],
    heartbeat: Callable[[], None],
) -> Rollback:
    """Moves all files later than a checkpoint, newest first, Spark's log entries before the checkpoints.

    After an interruption at any point, the last batch in Spark's logs has its checkpoint.

    Args:
        logs: Spark's logs, fenced.
        record: record of the checkpoint.
        clock: source of time.
        damaged: files of damaged records, which the store skips.
        later: checkpoints to move, ascending.
        heartbeat: called after each file.

    Raises:
        FencedError: another driver has claimed the location.
        StorageError: a file cannot be moved.
    """
    storage, store = logs.storage, logs.store
    plan = _planned(storage, record, later, clock)
    moving = _Moving(storage, plan.rollback_dir)
    for name in (*plan.moved, *damaged):
        logs.check()
        moving.move(name)
        heartbeat()
    for other in reversed(later):
        if other.attempt:
            moving.add(RecordFiles(storage).name(other.id), encode_record(other))
        moving.copy(in_location(other.metadata.path))
        logs.check()
        store.subsume(other)  # the record first: a checkpoint that is found must be whole
        moving.move(in_location(other.metadata.path))
        heartbeat()
    for path in _unneeded(storage, store.all()):
        logs.check()
        moving.move(in_location(path))
        heartbeat()
    return replace(plan, dry_run=False, moved=tuple(moving.sizes), size=sum(moving.sizes.values()))


def move_to_rollback_dir(storage: Storage, names: Sequence[str], clock: Clock) -> str:
    """Moves files to the directory of a rollback.

    Returns:
        The directory, relative to the location.

    Raises:
        StorageError: a file cannot be moved.
    """
    moving = _Moving(storage, new_rollback_dir(clock))
    for name in names:
        moving.move(name)
    return moving.directory


def new_rollback_dir(clock: Clock) -> str:
    """A new directory for moved files, relative to the location."""
    moment = datetime.fromtimestamp(clock.now_ms() / 1000, timezone.utc)
    return f"{ROLLBACK_DIR}/{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03}Z"


class _Moving:
    """Moves files into a directory under their names."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self.directory = directory
        self.sizes: dict[str, int] = {}

    def add(self, name: str, data: bytes) -> None:
        self._storage.write_atomic(f"{self.directory}/{name}", data)
        self.sizes[name] = len(data)

    def copy(self, name: str) -> None:
        """Copies a file that exists and was not copied before."""
        if name in self.sizes:
            return
        with suppress(StateFileNotFoundError):
            self.sizes[name] = copy_file(self._storage, name, self._storage, f"{self.directory}/{name}")

    def move(self, name: str) -> None:
        """Moves a file if it exists."""
        self.copy(name)
        self._storage.delete(name)
        self._storage.remove_empty(name.rpartition("/")[0])


def _later(store: CompletedCheckpointStore, record: CheckpointRecord) -> list[CheckpointRecord]:
    return [other for other in store.all() if other.id > record.id]


def _planned(storage: Storage, record: CheckpointRecord, later: Sequence[CheckpointRecord], clock: Clock) -> Rollback:
    log = SparkLog(storage)
    batches = SparkBatches.of(log)
    return Rollback(
        storage.location,
        True,
        record,
        new_rollback_dir(clock),
        tuple(batch for batch in batches.started if batch > record.batch_id),
        tuple(other.id for other in later),
        tuple(_entries_after(log, batches, record.batch_id)),
    )


def _entries_after(log: SparkLog, batches: SparkBatches, batch_id: int) -> Iterator[str]:
    """Spark's files of later batches. The commit of each batch comes first: without it Spark repeats the batch."""
    for batch in sorted({*batches.started, *batches.committed}, reverse=True):
        if batch > batch_id:
            yield from (entry_name(BatchLog.COMMITS, batch), entry_name(BatchLog.OFFSETS, batch))
    for operator_id in log.operators():
        yield from log.later_metadata(operator_id, batch_id)


def _unneeded(storage: Storage, retained: Sequence[CheckpointRecord]) -> list[str]:
    """The files below `ckpt` that no retained checkpoint refers to; empty if one of those is unreadable."""
    used: set[str] = set()
    for record in retained:
        try:
            used |= {record.metadata.path, *read_checkpoint(storage, record).files()}
        except DamagedCheckpointError:  # noqa: PERF203
            return []
    return [orphan.path for orphan in select_orphans(list_state(storage), used) if not orphan.is_directory]


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


def _find(storage: Storage, store: CompletedCheckpointStore, checkpoint_id: int) -> CheckpointRecord:
    by_id = {record.id: record for record in store.all()}
    if checkpoint_id not in by_id:
        raise CheckpointNotFoundError(storage.location, checkpoint_id, sorted(by_id))
    return by_id[checkpoint_id]


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
