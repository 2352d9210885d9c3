"""One run of a query: its messages, in their order, over the parts that decide (Flink: `CheckpointCoordinator`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from spark_ckpt.checkpoint.chains import chain_of
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.policy import ack_threshold, discards_checkpoints
from spark_ckpt.checkpoint.statistics import CheckpointStats, StatsHistory
from spark_ckpt.completed import CheckpointRecord, JobStatus
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.config import TIMEOUT
from spark_ckpt.coordinator.ack_validation import check_ack
from spark_ckpt.coordinator.attempts import CompletedAttempts
from spark_ckpt.coordinator.bases import BaseRequests
from spark_ckpt.coordinator.checkpoint_cache import CheckpointCache
from spark_ckpt.coordinator.completion import Completion
from spark_ckpt.coordinator.errors import IncompleteCheckpointError
from spark_ckpt.coordinator.failures import Abort, FailureManager, FailureReason
from spark_ckpt.coordinator.heartbeat import Heartbeat
from spark_ckpt.coordinator.locate import located
from spark_ckpt.coordinator.messages import (
    NO_VERSION,
    Ack,
    AckReply,
    Decline,
    Event,
    Locate,
    LocateReply,
    Notification,
    Outcome,
    TaskFailed,
    Trigger,
    TriggerReply,
    Unreadable,
)
from spark_ckpt.coordinator.open_job import Environment, OpenJob, open_job, starting_point
from spark_ckpt.coordinator.parallelism import check_parallelism
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.recent_batches import RecentBatches
from spark_ckpt.coordinator.statistics import stats_of_failed
from spark_ckpt.coordinator.subsumption import Subsumption
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError
from spark_ckpt.operations.rollback_on_damage import WayBack, judge_unreadable

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0

# Nothing of a checkpoint is lost by these; the query, or its driver, is on its way out.
_ORDERLY = (FailureReason.QUERY_ENDED, FailureReason.SHUTDOWN)


def _discard_notification(notification: Notification) -> None:
    """Drop a notification: the job has no executors."""


class Job:
    """The coordinator of one job. Not thread-safe: one thread hands it its messages.

    Args:
        trigger: the first of the job; opens it.
        environment: what jobs share.
        notify: takes what executors are to be told.

    Raises:
        SparkCkptError: as in `open_job`.
    """

    def __init__(
        self, trigger: Trigger, environment: Environment, notify: Callable[[Notification], None] = _discard_notification
    ) -> None:
        self._clock = environment.clock
        self._notify = notify
        self._trigger = trigger
        self._open: OpenJob = open_job(trigger, environment, self._going_back)
        config = self._open.config
        self._parent = self._open.parent
        self._checkpoint_cache = CheckpointCache(self._open)
        self._base_requests = BaseRequests(config)
        self._subsumption = Subsumption(self._open, self._on_subsumed)
        self._failures = FailureManager(config.tolerable_failures)
        self._history = StatsHistory(config.history, self._open.history)
        self._recent = RecentBatches(self._clock)
        self._completion = Completion(self._open, self._failures, self._history, self._recent, self._clock)
        self._pending: PendingCheckpoint | None = None
        self._expires = 0.0
        self._tried = False  # whether completing the pending checkpoint has failed
        self._completed_attempts: CompletedAttempts | None = None
        self._aborted: tuple[PendingCheckpoint, Abort] | None = None
        self._deferred_deletes: set[str] = set()  # files of acks of this batch that do not count
        self._checkpoint_cache.remember(self._parent, own=self._parent.version == trigger.version)

    @property
    def history(self) -> tuple[CheckpointStats, ...]:
        """Statistics of the last checkpoints, oldest first."""
        return self._history.entries

    # ---- messages ----------------------------------------------------------------------------------------------------

    def trigger(self, trigger: Trigger) -> TriggerReply:
        """A batch begins.

        A pending checkpoint of another version is aborted. For the version that is pending already this is a repetition
        and changes nothing, unless completing it has failed: then all its subtasks must acknowledge anew.

        Raises:
            IncompleteCheckpointError: the batch before left subtasks that did not acknowledge.
            SparkCkptError: the state that the batch starts from cannot be used (see `open_job`).
        """
        self._settle()
        self._trigger = trigger
        self._delete_deferred()
        pending = self._pending
        is_pending = pending is not None and pending.version == trigger.version and not self._tried
        if is_pending or self._checkpoint_cache.own_checkpoint(trigger.version) is not None:
            return self._trigger_reply()
        if pending is not None:
            self._abort(_superseded(pending, trigger))
            self._delete_deferred()
        self._use_parent_of(trigger)
        check_parallelism(trigger, self._parent, self._open.config)
        self._pending = PendingCheckpoint(trigger.operators, trigger.batch_id, trigger.version, self._clock.now_ms())
        self._recent.began(trigger.version)
        self._expires = self._clock.monotonic() + (self._open.config.timeout or 0.0)
        self._tried = False
        return self._trigger_reply()

    def locate(self, request: Locate) -> LocateReply:
        """Location of the state of a subtask.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            StateIdMismatchError: the state there is not the one that Spark asks for.
            CheckpointError: the checkpoint has no such subtask.
        """
        self._settle()
        if request.version > 0:
            reply = located(request, self._checkpoint_cache.state_of(request.version), self._base_requests)
            return replace(reply, ack_threshold=self._ack_threshold)
        job, operator_id = self._open, request.subtask.operator_id
        operator = next((o for o in self._trigger.operators if o.operator_id == operator_id), None)
        name, fmt = (operator.name, operator.state_format_version) if operator else ("", None)
        return LocateReply(
            None, None, job.max_parallelism, job.key_group_factors, name, fmt, 0, (), ack_threshold=self._ack_threshold
        )

    def acknowledge(self, ack: Ack) -> AckReply:
        """A subtask is ready. The ack that makes the checkpoint complete is answered once that is durable.

        If it cannot be completed, the ack does not count: the task fails, and its next attempt tries once more.

        Raises:
            SparkCkptError: the ack makes no sense, or completing the checkpoint failed (see `Completion.complete`).
        """
        self._settle()
        self.expire()
        if self._trigger.is_standalone:
            self._trigger_standalone(ack)
        if (checkpoint := self._checkpoint_cache.own_checkpoint(ack.version)) is not None:
            return self._late_reply(ack, checkpoint)
        pending = self._pending
        if pending is None or pending.version != ack.version:
            return self._refusal(ack, Outcome.DISCARDED, None, self._why_not_pending(ack))
        chain = chain_of(self._parent.table, ack.subtask)
        if pending.knows(ack.subtask):
            parallelism = pending.parallelism[ack.subtask.of_operator]
            ack = check_ack(ack, parallelism, self._open, chain, self._checkpoint_cache.ids_of)
        decision = pending.acknowledge(ack, self._clock.now_ms())
        if decision.outcome is not Outcome.SUCCESS:
            return self._refusal(ack, *decision)
        if ack.base_failure is not None:
            self._base_failed(pending, ack)
        due, required = self._base_requests.after_ack(ack, chain, self._parent.table)
        if not pending.is_complete:
            newest = self._checkpoint_cache.newest_own_version()
            return AckReply(Outcome.SUCCESS, ack.state_id, due, None, newest, base_required=required)
        completed = self._publish(pending, ack)
        return AckReply(Outcome.SUCCESS, ack.state_id, due, completed, ack.version, base_required=required)

    def decline(self, declined: Decline) -> None:
        """A store could not take part: the acks of its task's attempt do not count any more."""
        pending = self._pending
        _log.warning("%s declines the checkpoint of batch %d: %s", declined.subtask, declined.batch_id, declined.reason)
        self._failures.count(FailureReason.DECLINED)
        if pending is not None and pending.version == declined.version:
            self._discard(pending.decline(declined))

    def unreadable(self, request: Unreadable) -> None:
        """A store could not read a state. Returns if nothing is wrong with its files.

        Raises:
            DamagedCheckpointError: the state is damaged.
            RolledBackError: it is, and the query has gone back, as its settings say. The job can do nothing more.
            VersionNotFoundError, FencedError, StorageError: as they say.
        """
        self._settle()
        job = self._open
        heartbeat = Heartbeat(self._going_back, self._clock, job.config.bridge_timeout)
        way = WayBack(job.storage, job.store, job.config, self._clock, heartbeat=heartbeat)
        _log.warning("%s cannot read version %d: %s", request.subtask, request.version, request.reason)
        try:
            state = self._checkpoint_cache.state_of(request.version)
        except DamagedCheckpointError as damaged:
            if way.is_taken:
                way.go(damaged, is_owner=True)
            raise
        judge_unreadable(request.subtask, state, way, job.store.all())

    def task_failed(self, failure: TaskFailed) -> None:
        """A task attempt failed: its acks do not count any more while the checkpoint is pending."""
        if self._completed_attempts is not None:
            self._completed_attempts.task_failed(failure)
        if self._pending is not None and (dropped := self._pending.task_failed(failure)):
            self._failures.count(FailureReason.TASK_FAILED)
            self._discard(dropped)

    def close(self, status: JobStatus) -> None:
        """The run has ended. Checkpoints stay, unless the settings say that they do not outlive such an end.

        If the driver is gone (`SUSPENDED`), its tasks' files stay too: another process may go on with the same batch.
        Never raises for what the storage does: what cannot be deleted stays, and is logged.
        """
        job = self._open
        try:
            self._settle()
        except SparkCkptError as e:
            _log.warning("the last checkpoint stays in doubt: %s", e)
        if counts := self._failures.counts:
            _log.info("failures in this run: %s", ", ".join(f"{reason.value} {n}" for reason, n in counts.items()))
        pending, suspended = self._pending, status is JobStatus.SUSPENDED
        if pending is not None:
            reason = FailureReason.SHUTDOWN if suspended else FailureReason.QUERY_ENDED
            detail = f"the query is {status.value}, and {pending.describe_missing()} did not acknowledge"
            self._abort(Abort(reason, detail), keep_files=suspended)
        self._delete_deferred()
        self._subsumption.close(discards_checkpoints(status, job.config) and not self._completion.is_in_doubt)
        job.store.shutdown(status)
        job.cleaner.close(_CLOSE_SECONDS)

    # ---- what time brings --------------------------------------------------------------------------------------------

    @property
    def seconds_to_expiry(self) -> float | None:
        """Seconds until `expire` will have something to do, unless a message comes; None if it will not."""
        if self._pending is None or self._open.config.timeout is None or self._completion.is_in_doubt:
            return None
        return max(0.0, self._expires - self._clock.monotonic())

    def expire(self) -> None:
        """Gives up the pending checkpoint if it has been pending for longer than it may."""
        pending, timeout = self._pending, self._open.config.timeout
        if pending is not None and self.seconds_to_expiry == 0.0:
            detail = f"{pending.describe_missing()} did not acknowledge within {timeout:g} s ({TIMEOUT.key})"
            self._abort(Abort(FailureReason.EXPIRED, detail))

    def housekeeping(self) -> None:
        """Work that can wait until the ack is answered: drop subsumed checkpoints. Never raises."""
        self._subsumption.drop_subsumed()

    # ---- completing --------------------------------------------------------------------------------------------------

    def _publish(self, pending: PendingCheckpoint, last: Ack) -> int:
        try:
            return self._on_durable(self._completion.complete(pending, self._trigger, self._parent))
        except FencedError as e:
            self._fenced(e)
            raise
        except BaseException:
            self._tried = True
            pending.withdraw(last)
            self._discard([last])
            raise

    def _on_durable(self, state: CheckpointState) -> int:
        assert state.record is not None
        assert self._pending is not None
        self._completed_attempts, self._pending = self._pending.attempts_at_completion(), None
        self._aborted = None
        self._parent = state
        self._delete_deferred()
        self._subsumption.on_durable()
        self._checkpoint_cache.remember(state, own=True)
        self._tell(Event.COMPLETE, state.version, state.record.id)
        return state.record.id

    def _on_subsumed(self, record: CheckpointRecord) -> None:
        self._checkpoint_cache.forget(record.id)
        if self._open.store.latest_of_version(record.version) is None:
            self._tell(Event.SUBSUMED, record.version, record.id)

    def _settle(self) -> None:
        """Finds out about a record whose outcome was unknown, before anything else is done."""
        try:
            state = self._completion.settle()
        except FencedError as e:
            self._fenced(e)
            raise
        if state is not None:
            self._on_durable(state)

    def _fenced(self, error: FencedError) -> None:
        # The files stay: the new owner may have found the record, and go on from it.
        self._abort(Abort(FailureReason.FENCED, str(error)), keep_files=True)

    def _abort(self, abort: Abort, keep_files: bool = False) -> None:
        """Aborts the pending checkpoint: late acks are discarded, files of its acks go once the batch is over."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        self._aborted = pending, abort
        level = logging.INFO if abort.reason in _ORDERLY else logging.WARNING
        _log.log(level, "the checkpoint of batch %d is given up: %s", pending.batch_id, abort)
        self._failures.count(abort.reason)
        self._history.add(stats_of_failed(pending, abort, self._clock.now_ms()))
        if keep_files:
            self._deferred_deletes.clear()
        else:
            self._discard(pending.acks.values())
        self._tell(Event.ABORTED, pending.version, reason=str(abort))

    def _base_failed(self, pending: PendingCheckpoint, ack: Ack) -> None:
        _log.warning("%s: a base snapshot failed; the chain of deltas grows: %s", ack.subtask, ack.base_failure)
        pending.failures[FailureReason.BASE] += 1
        self._failures.count(FailureReason.BASE)

    def _discard(self, acks: Iterable[Ack]) -> None:
        """Schedules files of acks that do not count for deletion, at the end of their batch.

        Until then the ack of another task may name the same file. And the side process that replaces a dead one gets
        the acks of the batch again (docs/protocol.md, section 1.5): it does not know that the checkpoint was aborted,
        and may complete it with them.
        """
        self._deferred_deletes.update(path for ack in acks for path in ack.paths)

    def _delete_deferred(self) -> None:
        """Deletes the files of acks that are not sent again: their batch is over."""
        registry, pending = self._open.registry, self._pending.acks if self._pending is not None else {}
        counting = (*pending.values(), *self._completion.acks_in_doubt.values())
        named = {path for ack in counting for path in ack.paths}
        unused = sorted(path for path in self._deferred_deletes - named if path not in registry)
        self._open.cleaner.submit(in_location(path) for path in unused)
        if registry.is_whole:
            self._deferred_deletes &= named
        else:
            self._deferred_deletes.difference_update(unused)

    # ---- replies -----------------------------------------------------------------------------------------------------

    def _refusal(self, ack: Ack, outcome: Outcome, counts: str | None, reason: str | None) -> AckReply:
        """The answer to an ack that does not count."""
        self._discard([ack])
        return AckReply(outcome, counts, completed_version=self._checkpoint_cache.newest_own_version(), reason=reason)

    def _late_reply(self, ack: Ack, checkpoint: int) -> AckReply:
        """The answer to an ack of a version that this job has completed.

        To one that does not count it does not name the checkpoint: the next batch may have begun, and its acks would be
        taken for those that need not be told again.
        """
        counts = self._checkpoint_cache.id_of(ack.version, ack.subtask)
        if counts == ack.state_id:
            return AckReply(Outcome.SUCCESS, counts, False, checkpoint, self._checkpoint_cache.newest_own_version())
        if counts is None:
            reason = f"{ack.subtask} is no subtask of batch {ack.batch_id}: checkpoint {checkpoint} does not have it"
            return self._refusal(ack, Outcome.UNKNOWN, None, reason)
        attempts = self._completed_attempts
        if attempts is None or attempts.version != ack.version:
            return self._refusal(ack, Outcome.DUPLICATE, counts, None)
        return self._refusal(ack, *attempts.late(ack, counts))

    def _why_not_pending(self, ack: Ack) -> str:
        if self._aborted is not None and self._aborted[0].version == ack.version:
            return f"the checkpoint of batch {ack.batch_id} was given up: {self._aborted[1]}"
        now = f"batch {self._pending.batch_id} is" if self._pending is not None else "none is"
        return f"no checkpoint of batch {ack.batch_id} is pending; {now}"

    def _trigger_reply(self) -> TriggerReply:
        job = self._open
        return TriggerReply(job.store.generation, job.max_parallelism, job.key_group_factors, self._ack_threshold)

    @property
    def _ack_threshold(self) -> int:
        return ack_threshold(self._trigger.acks, self._open.config)

    def _going_back(self) -> None:
        self._tell(Event.GOING_BACK, NO_VERSION)

    def _tell(self, event: Event, version: int, checkpoint_id: int | None = None, reason: str | None = None) -> None:
        self._notify(Notification(self._trigger.job, event, version, checkpoint_id, reason))

    # ---- where a batch starts ----------------------------------------------------------------------------------------

    def _use_parent_of(self, trigger: Trigger) -> None:
        """Makes the state that a batch starts from the base."""
        version = trigger.version - 1
        if self._parent.version == version:
            return
        if version > 0 and self._aborted is not None and self._aborted[0].version == version:
            raise IncompleteCheckpointError(version, self._aborted[0].describe_missing())
        self._parent = starting_point(replace(trigger, job=""), self._open.storage, self._open.store)
        self._checkpoint_cache.remember(self._parent, own=False)

    def _trigger_standalone(self, ack: Ack) -> None:
        """A store without a query commits any version it can load, without saying so before; the last commit counts."""
        if self._checkpoint_cache.own_checkpoint(ack.version) is not None:
            if self._checkpoint_cache.id_of(ack.version, ack.subtask) == ack.state_id:
                return
            self._checkpoint_cache.disown(ack.version)
        if self._pending is None or self._pending.version != ack.version:
            self.trigger(replace(self._trigger, batch_id=ack.version - 1, version=ack.version))


def _superseded(pending: PendingCheckpoint, trigger: Trigger) -> Abort:
    if pending.version == trigger.version:
        return Abort(FailureReason.STORAGE, "it could not be completed, and its batch begins anew")
    missing = pending.describe_missing()
    return Abort(FailureReason.INCOMPLETE, f"{missing} did not acknowledge before batch {trigger.batch_id} began")
