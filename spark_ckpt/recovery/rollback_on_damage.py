"""Handling of damage: name the way back, or roll back if the settings say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from spark_ckpt.checkpoint.errors import NO_OTHER_IS_WHOLE, VersionNotFoundError
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint, way_out
from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.config import ROLL_BACK, CheckpointConfig
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.recovery.errors import RolledBackError
from spark_ckpt.recovery.rollback import claim_and_move, claim_location
from spark_ckpt.recovery.state_check import check_subtask
from spark_ckpt.recovery.verdict import verify_checkpoint
from spark_ckpt.spark_files.errors import LogFencedError
from spark_ckpt.spark_files.evolved import replaced_after
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.spark_files.rollbacks import Rollbacks
from spark_ckpt.storage import Storage

Cause: TypeAlias = DamagedCheckpointError | DamagedRecordError | VersionNotFoundError
"""Reason why a query cannot start from the version that Spark's logs name."""


@dataclass(frozen=True, slots=True)
class AutomaticRollback:
    """Rollback of a damaged query, if its settings allow it.

    Args:
        publisher: publisher of the checkpoint location, whose store is recovered. All rollbacks of a run have the same
            one, because requests of a failed one may still be in flight.
        config: settings of the query.
        clock: time source.
        log_epoch: log epoch at the start of the query's run; None if it does not keep to the fence of Spark's logs.
        damaged: files of damaged records, which the store ignores.
        heartbeat: signals progress to waiting tasks, because a rollback may exceed their timeout.
        begins: called before a rollback changes anything. If it fails from then on, the run must complete no checkpoint
            and delete none: it does not know what the rollback has published again.
    """

    publisher: Publisher
    config: CheckpointConfig
    clock: Clock
    log_epoch: int | None = None
    damaged: Sequence[str] = ()
    heartbeat: Callable[[], None] = lambda: None
    begins: Callable[[], None] = lambda: None

    @property
    def storage(self) -> Storage:
        """Storage of the checkpoint location."""
        return self.publisher.storage

    @property
    def store(self) -> CompletedCheckpointStore:
        """Its completed checkpoints."""
        return self.publisher.store

    @property
    def is_enabled(self) -> bool:
        """True if the query rolls back automatically."""
        return self.config.on_damage == ROLL_BACK

    def run(self, cause: Cause, *, is_owner: bool = False) -> None:
        """Roll back to the newest intact checkpoint, if there is one, by the same steps as the command.

        Args:
            cause: damage.
            is_owner: whether the store is already claimed; if not, the rollback claims it.

        Raises:
            RolledBackError: the rollback is done.
            DamagedCheckpointError, DamagedRecordError: no retained checkpoint is intact.
            CheckpointNotFoundError: an earlier driver has subsumed the checkpoint before it was fenced.
            FencedError: another driver has claimed since.
            LogFencedError: another rollback has begun since the start of the run.
            StorageError: a file cannot be read or moved.
        """
        for record in reversed(self.store.all()):
            self.heartbeat()
            if record.id == getattr(cause, "checkpoint_id", None):
                continue
            if replaced_after(self.storage, record.batch_id) is not None:
                break  # it is from before an evolution, and the query that starts is the one after it
            verdict = verify_checkpoint(self.storage, record, progress=lambda done, of: self.heartbeat())
            if verdict.is_whole and verdict.can_go_back:
                self.begins()
                done = claim_and_move(
                    self.publisher,
                    record.id,
                    self.clock,
                    self.damaged,
                    claim=lambda: self._own(is_owner),
                    heartbeat=self.heartbeat,
                )
                rollback_dir = self.storage.describe(done.rollback_dir)
                raise RolledBackError(cause, record.id, record.batch_id, rollback_dir) from cause
        if isinstance(cause, DamagedCheckpointError):
            raise DamagedCheckpointError(cause.path, cause.checkpoint_id, cause.reason, None, NO_OTHER_IS_WHOLE)
        if isinstance(cause, DamagedRecordError):
            raise DamagedRecordError(cause.path, cause.reason, NO_OTHER_IS_WHOLE)

    def _own(self, is_owner: bool) -> None:
        if is_owner:
            self.store.check_owner()
        else:
            claim_location(self.storage, self.store)
        # Another rollback that has begun may be at its next move, which the claim does not stop.
        there = Rollbacks.of(self.storage)
        if self.log_epoch is not None and (there.unfinished or there.epoch > self.log_epoch):
            raise LogFencedError(self.storage.location, self.log_epoch)


def recover(rollback: AutomaticRollback) -> tuple[AutomaticRollback, DamagedRecordError | None]:
    """Read the log of completed checkpoints; with automatic rollback, skip damaged records.

    Returns:
        Way back, and the error of the first skipped record.

    Raises:
        DamagedRecordError: a record is damaged and was not skipped.
        StorageError: the log cannot be read.
    """
    try:
        rollback.store.recover()
    except DamagedRecordError as record:
        if not (damaged := rollback.store.leave_out_damaged()):
            raise
        rollback.store.recover()
        if not rollback.is_enabled:
            good = _newest_good(rollback.storage, rollback.store.all())
            raise DamagedRecordError(record.path, record.reason, way_out(rollback.storage, good)) from None
        return replace(rollback, damaged=damaged), record
    return rollback, None


def judge_unreadable(
    subtask: SubtaskKey, state: CheckpointState, rollback: AutomaticRollback, retained: Sequence[CheckpointRecord]
) -> None:
    """Check the files of a state that an executor could not read. Returns if they are intact.

    Args:
        subtask: subtask of the state.
        state: checkpoint of the state.
        rollback: the automatic rollback, with a claimed store.
        retained: all retained checkpoints.

    Raises:
        DamagedCheckpointError: the state is damaged.
        RolledBackError: the state is damaged, and the query was rolled back.
        StorageError: the storage does not answer.
    """
    assert state.record is not None
    path = rollback.storage.describe(in_location(state.record.metadata.path))
    damages = check_subtask(rollback.storage, state, path, subtask)
    if not damages:
        return
    first = damages[0]
    reason = first.reason if first.offset is None else f"{first.reason} (byte {first.offset:,})"
    others = [record for record in retained if record.id != state.record.id]
    good = None if rollback.is_enabled else _newest_good(rollback.storage, others, subtask)
    hint = way_out(rollback.storage, good)
    damaged = DamagedCheckpointError(first.path, state.record.id, reason, good.id if good else None, hint)
    if rollback.is_enabled:
        rollback.run(damaged, is_owner=True)
    raise damaged


def _newest_good(
    storage: Storage, records: Sequence[CheckpointRecord], subtask: SubtaskKey | None = None
) -> CheckpointRecord | None:
    """Newest checkpoint that the query can be rolled back to, with all its files and with an intact `subtask` if given.

    The rest of its state is not read. That takes long, and `spark-ckpt rollback` does it.
    """
    batches = SparkBatches.of(SparkLog(storage))
    for record in reversed(records):
        if not batches.can_follow(record.batch_id):
            continue
        path = storage.describe(in_location(record.metadata.path))
        try:
            state = read_checkpoint(storage, record)
            if subtask is None or not check_subtask(storage, state, path, subtask):
                return record
        except SparkCkptError:
            continue
    return None
