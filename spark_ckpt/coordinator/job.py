"""One run of a query: dispatch of its messages, in order (Flink: `CheckpointCoordinator`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from spark_ckpt.checkpoint.chains import chain_of
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.policy import ShippingLimits, discards_checkpoints, shipping_limits
from spark_ckpt.checkpoint.statistics import CheckpointStats, StatsHistory
from spark_ckpt.compaction.requests import CompactionRequests
from spark_ckpt.completed import CheckpointRecord, JobStatus
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.config import TIMEOUT
from spark_ckpt.coordinator.ack_validation import check_ack
from spark_ckpt.coordinator.attempts import CompletedAttempts
from spark_ckpt.coordinator.checkpoint_cache import CheckpointCache
from spark_ckpt.coordinator.completion import Completion, RecentBatches
from spark_ckpt.coordinator.errors import (
    IncompleteCheckpointError,
    RealTimeBatchIncompleteError,
    RollbackBegunError,
)
from spark_ckpt.coordinator.failures import ORDERLY, Abort, FailureManager, FailureReason
from spark_ckpt.coordinator.locate import located
from spark_ckpt.coordinator.open_job import Environment, OpenJob, open_job, starting_point
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.reporting import Reporting
from spark_ckpt.coordinator.reports import Report
from spark_ckpt.coordinator.running_rescale import RunningRescale
from spark_ckpt.coordinator.statistics import stats_of_failed
from spark_ckpt.coordinator.subsumption import Subsumption
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError
from spark_ckpt.figures import human_duration, human_size
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import (
    Ack,
    AckReply,
    Decline,
    EndOffsets,
    EndOffsetsReply,
    Event,
    Locate,
    LocateReply,
    Notification,
    Outcome,
    Rescale,
    RescaleReply,
    TaskFailed,
    Trigger,
    TriggerReply,
    Unreadable,
)
from spark_ckpt.recovery.heartbeat import Heartbeat
from spark_ckpt.recovery.parallelism import check_parallelism
from spark_ckpt.recovery.rollback_on_damage import AutomaticRollback, judge_unreadable
from spark_ckpt.storage.paths import is_state_path

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0


def _drop(message: object) -> None:
    """Drop a notification or a report: the job has no executors or no driver."""


def _log_completed(checkpoint_id: int, stats: CheckpointStats) -> None:
    duration = human_duration(stats.duration_ms + (stats.completing_ms or 0))
    size = "" if stats.size is None else f", {human_size(stats.size.new_bytes)} new"
    _log.info("completed checkpoint %d in %s%s", checkpoint_id, duration, size, extra={"checkpoint": checkpoint_id})


class Job:
    """Coordinator of one job. Not thread-safe: one thread delivers its messages.

    Args:
        trigger: first trigger of the job, which opens it.
        environment: dependencies shared by jobs.
        notify: receives notifications of executors.
        report: receives reports of checkpoints.

    Raises:
        SparkCkptError: see `open_job`.
    """

    def __init__(
        self,
        trigger: Trigger,
        environment: Environment,
        notify: Callable[[Notification], None] = _drop,
        report: Callable[[Report], None] = _drop,
    ) -> None:
        self._clock = environment.clock
        self._process_claims = environment.claims
        self._notify = notify
        self._trigger = trigger
        self._open: OpenJob = open_job(trigger, environment, self._going_back)
        config = self._open.config
        self._parent = self._open.parent
        self._checkpoint_cache = CheckpointCache(self._open)
        self._compactions = CompactionRequests(config)
        self._subsumption = Subsumption(self._open, self._on_subsumed, self._clock)
        self._failures = FailureManager(config.tolerable_failures)
        self._history = StatsHistory(config.history, self._open.history)
        self._recent = RecentBatches(self._clock)
        self._rescale = RunningRescale(self._open, environment, self._want_rescale)
        self._completion = Completion(self._open, self._failures, self._history, self._recent, self._clock)
        self._pending: PendingCheckpoint | None = None
        self._expires = 0.0
        self._tried = False  # whether a completion of the pending checkpoint has failed
        self._is_rolling_back = False
        self._rollback_publisher = self._open.publisher()
        self._unanswered: tuple[PendingCheckpoint, SubtaskKey] | None = None  # the ack that counts and is being handled
        self._completed_attempts: CompletedAttempts | None = None
        self._aborted: tuple[PendingCheckpoint, Abort] | None = None
        self._deferred_deletes: set[str] = set()  # files of acks of this batch that do not count
        self._checkpoint_cache.remember(self._parent, own=self._parent.version == trigger.version)
        self._reporting = Reporting(trigger, self._open, report, environment)
        self._reporting.restored(self._parent, self._clock.now_ms())

    @property
    def history(self) -> tuple[CheckpointStats, ...]:
        """Statistics of the last checkpoints, oldest first."""
        return self._history.entries

    # ---- messages ----------------------------------------------------------------------------------------------------

    def trigger(self, trigger: Trigger) -> TriggerReply:
        """Begin a batch.

        Aborts a pending checkpoint of another version. A repeated trigger of the pending version changes nothing,
        unless its completion has failed: then all its subtasks must acknowledge again.

        Raises:
            IncompleteCheckpointError: subtasks of the previous batch did not acknowledge.
            SparkCkptError: the parent checkpoint cannot be used (see `open_job`).
        """
        self._check_not_rolling_back()
        self._settle()
        self._reporting.flush()
        self._trigger = trigger
        self._delete_deferred()
        pending = self._pending
        is_pending = pending is not None and pending.version == trigger.version and not self._tried
        if is_pending or self._checkpoint_cache.own_checkpoint(trigger.version) is not None:
            return self._trigger_reply()
        if pending is not None:
            self._abort(pending.superseded_by(trigger))
            self._delete_deferred()
        self._use_parent_of(trigger)
        self._rescale_for(trigger)
        check_parallelism(trigger, self._parent, self._open.config)
        self._pending = PendingCheckpoint(trigger.operators, trigger.batch_id, trigger.version, self._clock.now_ms())
        self._reporting.triggered(trigger, self._pending)
        self._recent.began(trigger.version)
        interval = (trigger.real_time_ms or 0) / 1000
        self._expires = self._clock.monotonic() + interval + (self._open.config.timeout or 0.0)
        self._tried = False
        return self._trigger_reply()

    def rescale(self, request: Rescale) -> RescaleReply:
        """Agree to a rescale between two batches.

        Raises:
            RescaleRefusedError: the rescale is impossible. The query continues as it was.
        """
        self._check_not_rolling_back()
        self._settle()
        return self._rescale.agree(request, self._trigger, self._parent)

    def locate(self, request: Locate) -> LocateReply:
        """Location of the state of a subtask.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            StateIdMismatchError: the checkpoint has another state id than Spark asks for.
            CheckpointError: the checkpoint has no such subtask.
        """
        self._settle()
        if request.version > 0:
            state, job = self._checkpoint_cache.state_of(request.version), self._open
            is_newest = request.version == self._parent.version
            slow = job.storage.requests_are_slow
            reply = located(request, state, self._compactions, job.config, is_newest=is_newest, requests_are_slow=slow)
            return replace(reply, limits=self._limits)
        job, operator_id = self._open, request.subtask.operator_id
        operator = next((o for o in self._trigger.operators if o.operator_id == operator_id), None)
        name, fmt = (operator.name, operator.state_format_version) if operator else ("", None)
        return LocateReply(
            None, None, job.max_parallelism, job.key_group_factors, name, fmt, 0, (), limits=self._limits
        )

    def acknowledge(self, ack: Ack, queued_seconds: float = 0.0) -> AckReply:
        """Acknowledgement of a subtask. The last one is answered once the checkpoint is durable, except in real-time
        mode: there `end_offsets` completes it.

        If completion fails, the last ack does not count: its task fails, and the next attempt retries.

        Args:
            ack: ack as received.
            queued_seconds: time since its arrival, in which it waited for earlier messages.

        Raises:
            SparkCkptError: the ack is invalid, or completion failed (see `Completion.complete`).
        """
        try:
            return self._acknowledge(ack, queued_seconds)
        except FencedError:
            raise
        except SparkCkptError:
            # The store cannot tell whether it counts, so it deletes nothing.
            self._discard([ack])
            raise

    def _acknowledge(self, ack: Ack, queued_seconds: float) -> AckReply:
        self._unanswered = None
        self._check_not_rolling_back()
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
            ack = check_ack(ack, parallelism, self._open, chain, self._checkpoint_cache.state_ids)
        decision = pending.acknowledge(ack, self._clock.now_ms() - round(queued_seconds * 1000))
        if decision.outcome is not Outcome.SUCCESS:
            return self._refusal(ack, *decision)
        self._unanswered = pending, ack.subtask
        if ack.compaction_failure is not None:
            self._base_failed(pending, ack)
        compaction = self._compactions.after_ack(ack, chain, self._parent.table)
        keep_deltas = chain is not None and self._compactions.merges_deltas(chain)
        if not pending.is_complete or self._trigger.is_real_time:
            completed, newest = None, self._checkpoint_cache.newest_own_version()
        else:
            completed, newest = self._publish(pending, ack), ack.version
        return AckReply(Outcome.SUCCESS, ack.state_id, compaction, completed, newest, keep_deltas=keep_deltas)

    def answered(self, seconds: float) -> None:
        """Note that the last ack was answered so many seconds after its arrival."""
        if self._unanswered is not None:
            pending, subtask = self._unanswered
            pending.acknowledge_us[subtask] = round(seconds * 1_000_000)
            self._unanswered = None

    def end_offsets(self, request: EndOffsets) -> EndOffsetsReply:
        """Complete the checkpoint of a batch in real-time mode: all tasks have acknowledged, and the end offsets are
        known. The checkpoint is durable on return; Spark writes `offsets/<batch>` only then.

        Raises:
            RealTimeBatchIncompleteError: subtasks did not acknowledge, or the checkpoint was aborted.
            SparkLogFormatError: the text is not an entry of Spark's offset log.
            SparkCkptError: completion failed (see `Completion.complete`).
        """
        self._check_not_rolling_back()
        self._settle()
        self.expire()
        if (checkpoint := self._checkpoint_cache.own_checkpoint(request.version)) is not None:
            return EndOffsetsReply(checkpoint, request.version)
        pending = self._pending
        if pending is None or pending.version != request.version:
            raise RealTimeBatchIncompleteError(request.batch_id, self._why_not_pending(request))
        if not pending.is_complete:
            raise RealTimeBatchIncompleteError(request.batch_id, pending.lack)
        self._trigger = self._trigger.with_end_offsets(request.offset_log)
        return EndOffsetsReply(self._publish(pending, None), request.version)

    def decline(self, declined: Decline) -> None:
        """Decline of a store that could not make its snapshot: drops the acks of its task attempt."""
        pending = self._pending
        _log.warning("%s declined the checkpoint of batch %d: %s", declined.subtask, declined.batch_id, declined.reason)
        self._failures.count(FailureReason.DECLINED)
        if pending is not None and pending.version == declined.version:
            self._discard(pending.decline(declined))

    def unreadable(self, request: Unreadable) -> None:
        """Report of a store that could not read a state. Returns if its files are intact.

        Raises:
            DamagedCheckpointError: the state is damaged.
            RolledBackError: the state is damaged, and the query was rolled back. The job cannot continue.
            VersionNotFoundError, FencedError, StorageError: see these classes. If a rollback has begun, the next report
                tries it again.
        """
        self._settle()
        rollback = self._rollback()
        _log.warning("%s cannot read version %d: %s", request.subtask, request.version, request.reason)
        try:
            state = self._checkpoint_cache.state_of(request.version)
        except DamagedCheckpointError as damaged:
            if rollback.is_enabled:
                rollback.run(damaged, is_owner=True)
            raise
        judge_unreadable(request.subtask, state, rollback, self._open.store.all())

    def task_failed(self, failure: TaskFailed) -> None:
        """Failure of a task attempt: drops its acks while the checkpoint is pending."""
        if self._completed_attempts is not None:
            self._completed_attempts.task_failed(failure)
        if self._pending is not None and (dropped := self._pending.task_failed(failure)):
            self._failures.count(FailureReason.TASK_FAILED)
            self._discard(dropped)

    def close(self, status: JobStatus) -> None:
        """End the run. Checkpoints are retained unless the settings say otherwise for this status.

        If the driver is gone (`SUSPENDED`), files of its tasks stay too: another process may continue the batch. Does
        not raise on storage failures: remaining files stay and are logged.
        """
        job = self._open
        self._process_claims.end(self._trigger.job)
        try:
            self._settle()
        except SparkCkptError as e:
            _log.warning("the outcome of the last checkpoint remains unknown: %s", e)
        if counts := self._failures.counts:
            _log.info("failures in this run: %s", ", ".join(f"{reason.value} {n}" for reason, n in counts.items()))
        pending, suspended = self._pending, status is JobStatus.SUSPENDED
        if pending is not None:
            reason = FailureReason.SHUTDOWN if suspended else FailureReason.QUERY_ENDED
            detail = f"the query is {status.value}; {pending.lack}"
            self._abort(Abort(reason, detail), keep_files=suspended)
        self._reporting.flush()
        self._delete_deferred()
        self._subsumption.close(discards_checkpoints(status, job.config) and not self._completion.is_in_doubt)
        job.store.shutdown(status)
        job.cleaner.close(_CLOSE_SECONDS)

    # ---- timers ------------------------------------------------------------------------------------------------------

    @property
    def seconds_to_expiry(self) -> float | None:
        """Seconds until the pending checkpoint expires; None if it cannot expire."""
        if self._pending is None or self._open.config.timeout is None or self._completion.is_in_doubt:
            return None
        return max(0.0, self._expires - self._clock.monotonic())

    def expire(self) -> None:
        """Abort the pending checkpoint if it has exceeded its timeout."""
        pending, timeout = self._pending, self._open.config.timeout
        if pending is not None and self.seconds_to_expiry == 0.0:
            detail = f"{pending.lack} within {timeout:g} s ({TIMEOUT.key})"
            self._abort(Abort(FailureReason.EXPIRED, detail))

    @property
    def seconds_to_timer(self) -> float | None:
        """Seconds until `run_timers` has something to do; None if that depends on the next message."""
        reports, drops = self._reporting.seconds_to_progress(self._pending), self._subsumption.seconds_to_timer
        timers = (self.seconds_to_expiry, reports, drops)
        return min((seconds for seconds in timers if seconds is not None), default=None)

    def run_timers(self) -> None:
        """Do what is due while no message comes: abort an expired checkpoint, report acks, drop checkpoints."""
        self.expire()
        self._reporting.progressed(self._pending)
        self._subsumption.run_timer()

    def housekeeping(self) -> None:
        """Report and drop checkpoints, after the ack is answered. Never raises."""
        self._reporting.flush()
        self._reporting.progressed(self._pending)
        if self._pending is None:
            self._reporting.look_for_savepoint()
            self._rescale.after_batch(self._trigger)
        self._subsumption.drop_subsumed()

    def _rollback(self) -> AutomaticRollback:
        publisher, config, epoch = self._rollback_publisher, self._open.config, self._trigger.log_epoch
        heartbeat = Heartbeat(self._going_back, self._clock, config.bridge_timeout)
        begins = self._rollback_begins
        return AutomaticRollback(publisher, config, self._clock, epoch, heartbeat=heartbeat, begins=begins)

    def _rollback_begins(self) -> None:
        self._is_rolling_back = True
        self._subsumption.stop()

    def _check_not_rolling_back(self) -> None:
        if self._is_rolling_back:
            raise RollbackBegunError(self._open.storage.location)

    # ---- completion --------------------------------------------------------------------------------------------------

    def _publish(self, pending: PendingCheckpoint, last: Ack | None) -> int:
        """Complete a checkpoint. If that fails, `last` no longer counts, so that its task can retry."""
        try:
            return self._on_durable(self._completion.complete(pending, self._trigger, self._parent))
        except FencedError as e:
            self._fenced(e)
            raise
        except BaseException:
            self._tried = True
            if last is not None:
                pending.withdraw(last)
                self._discard([last])
            raise

    def _on_durable(self, state: CheckpointState) -> int:
        assert state.record is not None
        assert self._pending is not None
        stats = self._history.entries[-1]
        self._reporting.completed(self._pending, state, stats)
        self._completed_attempts, self._pending = self._pending.attempts_at_completion(), None
        self._aborted = None
        self._parent = state
        if (file := self._rescale.file_of(state.version)) is not None:
            self._deferred_deletes.add(file)
        self._delete_deferred()
        self._subsumption.on_durable()
        self._checkpoint_cache.remember(state, own=True)
        self._tell(Event.COMPLETE, state.version, state.record.id)
        _log_completed(state.record.id, stats)
        return state.record.id

    def _on_subsumed(self, record: CheckpointRecord) -> None:
        self._checkpoint_cache.forget(record.id)
        if self._open.store.latest_of_version(record.version) is None:
            self._tell(Event.SUBSUMED, record.version, record.id)

    def _settle(self) -> None:
        """Settle a record with an unknown outcome."""
        try:
            state = self._completion.settle()
        except FencedError as e:
            self._fenced(e)
            raise
        if state is not None:
            self._on_durable(state)

    def _fenced(self, error: FencedError) -> None:
        # The files stay: the new owner may have found the record and continue from it.
        self._abort(Abort(FailureReason.FENCED, str(error)), keep_files=True)

    def _abort(self, abort: Abort, keep_files: bool = False) -> None:
        """Abort the pending checkpoint: discard late acks, delete files of its acks after the batch."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        self._aborted = pending, abort
        level = logging.INFO if abort.reason in ORDERLY else logging.WARNING
        _log.log(level, "aborted the checkpoint of batch %d: %s", pending.batch_id, abort)
        self._failures.count(abort.reason)
        now_ms = self._clock.now_ms()
        self._history.add(stats_of_failed(pending, abort, now_ms))
        self._reporting.failed(pending, abort, now_ms)
        if keep_files:
            self._deferred_deletes.clear()
        else:
            self._discard(pending.acks.values())
        self._tell(Event.ABORTED, pending.version, reason=str(abort))

    def _base_failed(self, pending: PendingCheckpoint, ack: Ack) -> None:
        _log.warning(
            "%s: a base snapshot or a merge failed, so the chain of deltas grows: %s",
            ack.subtask,
            ack.compaction_failure,
        )
        pending.failures[FailureReason.BASE] += 1
        self._failures.count(FailureReason.BASE)

    def _discard(self, acks: Iterable[Ack]) -> None:
        """Schedule files of acks that do not count for deletion at the end of their batch.

        Until then the ack of another task may name the same file. A restarted side process also receives the acks of
        the batch again (docs/protocol.md, section 1.5). It does not know of the abort, and may complete the checkpoint
        with these files.
        """
        self._deferred_deletes.update(path for ack in acks for path in ack.paths if is_state_path(path))

    def _delete_deferred(self) -> None:
        """Delete files of acks whose batch is over, so that they are not sent again."""
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
        """Reply to an ack that does not count."""
        self._discard([ack])
        return AckReply(outcome, counts, completed_version=self._checkpoint_cache.newest_own_version(), reason=reason)

    def _late_reply(self, ack: Ack, checkpoint: int) -> AckReply:
        """Reply to an ack of a version that this job has completed.

        Rejected acks carry no checkpoint id: the driver would take the acks of the next batch, which may have begun,
        for acks that it need not send again.
        """
        counts = self._checkpoint_cache.id_of(ack.version, ack.subtask)
        if counts == ack.state_id:
            newest = self._checkpoint_cache.newest_own_version()
            return AckReply(Outcome.SUCCESS, counts, completed=checkpoint, completed_version=newest)
        if counts is None:
            reason = f"{ack.subtask} is not a subtask of batch {ack.batch_id}: checkpoint {checkpoint} lacks it"
            return self._refusal(ack, Outcome.UNKNOWN, None, reason)
        attempts = self._completed_attempts
        if attempts is None or attempts.version != ack.version:
            return self._refusal(ack, Outcome.DUPLICATE, counts, None)
        return self._refusal(ack, *attempts.late(ack, counts))

    def _why_not_pending(self, request: Ack | EndOffsets) -> str:
        if self._aborted is not None and self._aborted[0].version == request.version:
            return f"the checkpoint of batch {request.batch_id} was aborted: {self._aborted[1]}"
        now = f"batch {self._pending.batch_id} is" if self._pending is not None else "none is"
        return f"no checkpoint of batch {request.batch_id} is pending; {now}"

    def _trigger_reply(self) -> TriggerReply:
        job = self._open
        return TriggerReply(job.store.generation, job.max_parallelism, job.key_group_factors, self._limits)

    @property
    def _limits(self) -> ShippingLimits:
        return shipping_limits(self._trigger.acks, self._open.config)

    def _going_back(self) -> None:
        self._tell(Event.GOING_BACK, None)

    def _tell(
        self, event: Event, version: int | None, checkpoint_id: int | None = None, reason: str | None = None
    ) -> None:
        self._notify(Notification(self._trigger.job, event, version, checkpoint_id, reason))

    # ---- parent checkpoint -------------------------------------------------------------------------------------------

    def _use_parent_of(self, trigger: Trigger) -> None:
        """Load the checkpoint that the batch starts from as the parent."""
        version = trigger.version - 1
        if self._parent.version == version:
            return
        if version > 0 and self._aborted is not None and self._aborted[0].version == version:
            raise IncompleteCheckpointError(version, self._aborted[0].describe_missing())
        self._parent = starting_point(replace(trigger, job=""), self._open.storage, self._open.store)
        self._checkpoint_cache.remember(self._parent, own=False)

    def _rescale_for(self, trigger: Trigger) -> None:
        """Assign the state of the parent to the partitions of a batch that has begun a rescale."""
        assigned = self._rescale.parent_of(trigger, self._parent)
        if assigned is not self._parent:
            self._parent = assigned
            self._checkpoint_cache.remember(assigned, own=False)

    def _want_rescale(self, partitions: int) -> None:
        self._notify(Notification(self._trigger.job, Event.RESCALE, None, partitions=partitions))

    def _trigger_standalone(self, ack: Ack) -> None:
        """Begin a batch for a store without a query, which commits any loadable version unannounced. The last wins."""
        if self._checkpoint_cache.own_checkpoint(ack.version) is not None:
            if self._checkpoint_cache.id_of(ack.version, ack.subtask) == ack.state_id:
                return
            self._checkpoint_cache.disown(ack.version)
        if self._pending is None or self._pending.version != ack.version:
            self.trigger(replace(self._trigger, batch_id=ack.version - 1, version=ack.version))
