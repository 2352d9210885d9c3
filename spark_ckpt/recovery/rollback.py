"""The steps of a rollback: later files are moved to a directory; none is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.clock import Clock
from spark_ckpt.completed import (
    CheckpointRecord,
    CompletedCheckpointStore,
    FilesystemCompletedCheckpointStore,
    RecordFiles,
    encode_record,
)
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import DamagedCheckpointError, StateFileNotFoundError
from spark_ckpt.location.driver_liveness import may_write
from spark_ckpt.location.errors import CheckpointNotFoundError
from spark_ckpt.location.listing import checkpoint_directories
from spark_ckpt.location.orphans import list_state, select_orphans
from spark_ckpt.location.tags import Tags
from spark_ckpt.recovery.fence import FencedLogs, check_not_subsumed, fenced_logs, publish_again
from spark_ckpt.spark_files.evolved import put_back
from spark_ckpt.spark_files.logs import BatchLog, SparkBatches, SparkLog, entry_name, make_partitions
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


def claim_and_move(
    publisher: Publisher,
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
        publisher: publisher of the location, whose store is recovered. Each attempt of a process has the same one.
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
    storage, store = publisher.storage, publisher.store
    may_run = may_write(store.claims())
    if claim is None:
        claim_location(storage, store)
    else:
        claim()
    record = checkpoint_in(storage, store, checkpoint_id)
    later = later_checkpoints(store, record)
    if may_run:
        check_not_subsumed(storage, store, record)
        publish_again(publisher, record, clock)
    with fenced_logs(storage, store, record.batch_id, clock, may_run=may_run) as logs:
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
    """Moves all files later than a checkpoint, newest first, Spark's log entries before the checkpoints. If the query
    has evolved since, the earlier files of its state and sources come back.

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
    plan = planned_rollback(storage, record, later, clock)
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
    for name in _tags_after(storage, record):
        logs.check()
        moving.move(name)
        heartbeat()
    logs.check()
    if put_back(storage, record.batch_id):
        make_partitions(storage, {operator.operator_id: operator.parallelism for operator in record.operators})
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


def later_checkpoints(store: CompletedCheckpointStore, record: CheckpointRecord) -> list[CheckpointRecord]:
    """Checkpoints of a store after one, ascending."""
    return [other for other in store.all() if other.id > record.id]


def planned_rollback(
    storage: Storage, record: CheckpointRecord, later: Sequence[CheckpointRecord], clock: Clock
) -> Rollback:
    """What a rollback to a checkpoint would do: the result of a dry run, without state files."""
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


def _tags_after(storage: Storage, record: CheckpointRecord) -> list[str]:
    """Files of the tags of later checkpoints. Call it when the records of these are gone: they get no tag any more."""
    return [tag.file for tag in Tags(storage).list() if tag.checkpoint_id > record.id]


def _unneeded(storage: Storage, retained: Sequence[CheckpointRecord]) -> list[str]:
    """The files below `ckpt` that no retained or tagged checkpoint refers to; empty if one of those is unreadable."""
    used: set[str] = set()
    try:
        for record in (*retained, *Tags(storage).records().values()):
            used |= {record.metadata.path, *read_checkpoint(storage, record).files()}
    except (DamagedCheckpointError, DamagedRecordError):
        return []
    return [orphan.path for orphan in select_orphans(list_state(storage), used) if not orphan.is_directory]


def checkpoint_in(storage: Storage, store: CompletedCheckpointStore, checkpoint_id: int) -> CheckpointRecord:
    """Checkpoint of a store by its id.

    Raises:
        CheckpointNotFoundError: the store has none with this id.
    """
    by_id = {record.id: record for record in store.all()}
    if checkpoint_id not in by_id:
        raise CheckpointNotFoundError(storage.location, checkpoint_id, sorted(by_id))
    return by_id[checkpoint_id]
