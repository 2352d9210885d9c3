"""Change of a stopped query's state or offsets: batches without input, added to Spark's logs with a checkpoint.

From the first write to the last one no query starts (`fenced_logs`), so a start finds the old query or the new one. An
interrupted change is taken back by a rollback to the checkpoint before it. Its command does that first when it is
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from spark_ckpt.checkpoint.batch import SparkBatch, state_ids
from spark_ckpt.checkpoint.chains import ChainTable
from spark_ckpt.checkpoint.load import CheckpointState, version_not_found
from spark_ckpt.checkpoint.publish import Publisher, checkpoint_of_operation, inline_state_in_file, with_chains
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore, Owner
from spark_ckpt.location.driver_liveness import HasEnded, check_fenced, may_write, never_ended
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.operations.last_batch import Refuse, SparkLogs, checkpoint_of_last_batch, read_logs
from spark_ckpt.recovery.fence import FencedLogs, fenced_logs
from spark_ckpt.recovery.rollback import claim_and_move
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import ROLLBACK, Rollbacks, read_marker
from spark_ckpt.storage import Storage

_MEANWHILE = "the query was started meanwhile. Stop it first"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a stopped query, before it is written.

    Args:
        operation: name of the command.
        storage: storage of the checkpoint location.
        store: its completed-checkpoint store, recovered.
        owner: owner of a claim.
        clock: source of time.
        refuse: makes the error.
        logs: the last batch in Spark's logs, which is committed.
        parent: its checkpoint.
        started_ms: start of the operation, in milliseconds since 1970 UTC.
    """

    operation: str
    storage: Storage
    store: CompletedCheckpointStore
    owner: Owner
    clock: Clock
    refuse: Refuse
    logs: SparkLogs
    parent: CheckpointState
    started_ms: int

    @property
    def batch(self) -> SparkBatch:
        """Description of the last batch."""
        assert self.parent.batch is not None
        return self.parent.batch

    @property
    def record(self) -> CheckpointRecord:
        """Record of the checkpoint that the change starts from."""
        assert self.parent.record is not None
        return self.parent.record

    def version_after(self, batches: int = 1) -> int:
        """Version of the state after so many added batches."""
        return self.batch.version + batches

    def write(
        self,
        table: ChainTable,
        offsets: OffsetEntry | None = None,
        batches: int = 1,
        *,
        batch: SparkBatch | None = None,
        replace_files: Callable[[FencedLogs], None] | None = None,
    ) -> CheckpointRecord:
        """Add the batches and their checkpoint.

        Args:
            table: chains of all subtasks at `version_after(batches)`; each chain has a state id of its own.
            offsets: entry of the offset log for each batch; None for that of the last batch.
            batches: number of batches.
            batch: description of the state with other stores or sources; None for that of the last batch.
            replace_files: replaces files of Spark's state and sources, for an evolution of the query.

        Returns:
            Record of the new checkpoint.

        Raises:
            SparkCkptError: as `refuse` makes it: the query was started meanwhile. Nothing was changed.
            FencedError: another driver or command has claimed the location.
            StorageError, UnknownOutcomeError: a write failed. No query starts until the change is repeated or taken
                back.
        """
        storage, store, last = self.storage, self.store, self.logs.committed
        may_run = may_write(store.claims())
        store.claim()
        if store.latest() != self.record:
            raise self.refuse(_MEANWHILE)
        with fenced_logs(storage, store, last, self.clock, self.operation, may_run=may_run) as fence:
            log = SparkLog(storage)
            there = SparkBatches.of(log)
            if (there.last_committed, there.started[-1]) != (last, last):
                fence.release()
                raise self.refuse(_MEANWHILE)
            if replace_files is not None:
                replace_files(fence)
            evolved = last if replace_files is not None else None
            return self._write_fenced(fence, log, table, offsets or self.logs.offsets, batches, batch, evolved)

    def _write_fenced(
        self,
        fence: FencedLogs,
        log: SparkLog,
        table: ChainTable,
        offsets: OffsetEntry,
        batches: int,
        described: SparkBatch | None,
        evolved: int | None,
    ) -> CheckpointRecord:
        first, last = self.logs.committed + 1, self.logs.committed + batches
        inline = inline_state_in_file(table)
        batch = with_chains(described or self.batch, table)
        batch = replace(batch, batch_id=last, version=last + 1, run_id=self.owner.run_id)
        commit = self.logs.commit
        for batch_id in range(first, last):
            fence.check()
            log.add_offsets(batch_id, offsets)
            log.add_commit(batch_id, commit)
        fence.check()
        log.add_offsets(last, offsets)
        now_ms = self.clock.now_ms()
        new = checkpoint_of_operation(batch, table, offsets, self.parent.history, inline, self.started_ms, now_ms)
        record = Publisher(self.storage, self.store, self.owner).publish(new, now_ms, evolved)
        fence.check()
        log.add_commit(last, commit.with_state_ids(state_ids(batch)) if commit.state_ids else commit)
        return record


@contextmanager
def begin_change(
    storage: Storage,
    operation: str,
    refuse: Refuse,
    *,
    settings: Mapping[str, str] | None,
    force: bool,
    dry_run: bool,
    clock: Clock,
    has_ended: HasEnded = never_ended,
) -> Iterator[Change]:
    """A change of a stopped query. Takes back an earlier change that was interrupted.

    Args:
        storage: storage of the checkpoint location.
        operation: name of the command.
        refuse: makes the error from a reason.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if its
            completed checkpoints are in ZooKeeper.
        force: True to proceed although a driver is running, or may be running elsewhere without the fence of Spark's
            logs.
        dry_run: True if the caller will write nothing.
        clock: source of time.
        has_ended: tells whether a run has ended although its driver's process is running.

    Yields:
        The change.

    Raises:
        SparkCkptError: as `refuse` makes it: a batch is not committed, or another operation has not finished.
        LocationInUseError: see `force`.
        VersionNotFoundError, DamagedCheckpointError, StateIdMismatchError: as in `checkpoint_of_last_batch`.
        SettingError, SparkLogFormatError, DamagedRecordError, StorageError: see those classes.
    """
    started_ms = clock.now_ms()
    with opened_store(storage, settings, operation, clock) as (store, owner):
        store.recover()
        if not force:
            check_fenced(storage.location, store, has_ended)
        if (unfinished := Rollbacks.of(storage).unfinished) != ():
            _take_back(Publisher(storage, store, owner), unfinished, refuse, clock, dry_run=dry_run)
        logs = read_logs(SparkLog(storage), refuse)
        if logs.begun is not None:
            raise refuse(
                f"batch {logs.committed + 1} has begun but is not committed. Start the query, let it finish that "
                "batch, and stop it between two batches. If it cannot, take the batch back with 'spark-ckpt rollback': "
                "its input comes again in a later batch, under another number for the sink"
            )
        parent = checkpoint_of_last_batch(storage, store, logs)
        yield Change(operation, storage, store, owner, clock, refuse, logs, parent, started_ms)


def _take_back(
    publisher: Publisher, unfinished: tuple[int, ...], refuse: Refuse, clock: Clock, *, dry_run: bool
) -> None:
    """Roll back to the checkpoint before an interrupted change."""
    storage, store = publisher.storage, publisher.store
    markers = [read_marker(storage, epoch) for epoch in unfinished]
    if any(marker.operation == ROLLBACK for marker in markers):
        raise refuse("a rollback, or the undo of an import, has not finished. Run it again first")
    begun = min(markers, key=lambda marker: marker.batch_id)
    if dry_run:
        raise refuse(f"'spark-ckpt {begun.operation}' has not finished. Run it again first")
    version = begun.batch_id + 1
    if (record := store.latest_of_version(version)) is None:
        raise version_not_found(storage, version, store.all())
    claim_and_move(publisher, record.id, clock)
