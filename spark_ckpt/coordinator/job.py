"""One run of a query: its messages, in their order, over the parts that decide (Flink: `CheckpointCoordinator`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from spark_ckpt.completed import CheckpointRecord, JobStatus
from spark_ckpt.config import TIMEOUT
from spark_ckpt.coordinator.acks import check_ack
from spark_ckpt.coordinator.attempts import CompletedAttempts
from spark_ckpt.coordinator.chains import chain_of
from spark_ckpt.coordinator.completing import Completion
from spark_ckpt.coordinator.dropping import Dropping
from spark_ckpt.coordinator.failures import Abort, FailureManager, FailureReason
from spark_ckpt.coordinator.known import KnownCheckpoints
from spark_ckpt.coordinator.layout import in_location
from spark_ckpt.coordinator.loading import CheckpointState
from spark_ckpt.coordinator.locating import located
from spark_ckpt.coordinator.messages import (
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
)
from spark_ckpt.coordinator.opening import Environment, OpenJob, check_parallelism, open_job, starting_point
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.policy import BaseRequests, discards_checkpoints
from spark_ckpt.coordinator.statistics import CheckpointStats, StatsHistory, stats_of_failed
from spark_ckpt.errors import FencedError, IncompleteCheckpointError, SparkCkptError

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0

# Nothing of a checkpoint is lost by these; the query, or its driver, is on its way out.
_ORDERLY = (FailureReason.QUERY_ENDED, FailureReason.SHUTDOWN)


def _tell_nobody(notification: Notification) -> None:
    """A job without executors to tell."""


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
        self, trigger: Trigger, environment: Environment, notify: Callable[[Notification], None] = _tell_nobody
    ) -> None:
        self._clock = environment.clock
        self._notify = notify
        self._open: OpenJob = open_job(trigger, environment)
        config = self._open.config
        self._trigger = trigger
        self._base = self._open.base
        self._known = KnownCheckpoints(self._open)
        self._bases = BaseRequests(config)
        self._dropping = Dropping(self._open, self._dropped)
        self._failures = FailureManager(config.tolerable_failures)
        self._history = StatsHistory(config.history, self._open.history)
        self._completion = Completion(self._open, self._failures, self._history, self._clock)
        self._pending: PendingCheckpoint | None = None
        self._expires = 0.0
        self._tried = False  # whether completing the pending checkpoint has failed
        self._completed_attempts: CompletedAttempts | None = None
        self._aborted: tuple[PendingCheckpoint, Abort] | None = None
        self._put_aside: set[str] = set()  # files of acks that do not count, which another ack may yet name
        self._known.remember(self._base, own=self._base.version == trigger.version)

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
        pending = self._pending
        is_pending = pending is not None and pending.version == trigger.version and not self._tried
        if is_pending or self._known.own_checkpoint(trigger.version) is not None:
            return self._trigger_reply()
        if pending is not None:
            self._abort(_superseded(pending, trigger))
        self._go_to_base_of(trigger)
        check_parallelism(trigger, self._base, self._open.config)
        self._pending = PendingCheckpoint(trigger.operators, trigger.batch_id, trigger.version, self._clock.now_ms())
        self._expires = self._clock.monotonic() + (self._open.config.timeout or 0.0)
        self._tried = False
        return self._trigger_reply()

    def locate(self, request: Locate) -> LocateReply:
        """Where the state of a subtask is.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            StateIdMismatchError: the state there is not the one that Spark asks for.
            CheckpointError: the checkpoint has no such subtask.
        """
        self._settle()
        if request.version > 0:
            return located(request, self._known.state_of(request.version))
        job, operator_id = self._open, request.subtask.operator_id
        operator = next((o for o in self._trigger.operators if o.operator_id == operator_id), None)
        name, fmt = (operator.name, operator.state_format_version) if operator else ("", None)
        return LocateReply(None, None, job.max_parallelism, job.key_group_factors, name, fmt, 0, ())

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
        if (checkpoint := self._known.own_checkpoint(ack.version)) is not None:
            return self._late_reply(ack, checkpoint)
        pending = self._pending
        if pending is None or pending.version != ack.version:
            return self._refusal(ack, Outcome.DISCARDED, None, self._why_not_pending(ack))
        chain = chain_of(self._base.table, ack.subtask)
        if pending.knows(ack.subtask):
            parallelism = pending.parallelism[ack.subtask.of_operator]
            ack = check_ack(ack, parallelism, self._open, chain, self._known.ids_of)
        decision = pending.acknowledge(ack, self._clock.now_ms())
        if decision.outcome is not Outcome.SUCCESS:
            return self._refusal(ack, *decision)
        base_due = self._bases.is_due(ack, chain)
        if not pending.is_complete:
            return AckReply(Outcome.SUCCESS, ack.ckpt_id, base_due, None, self._known.newest_own_version())
        completed = self._complete(pending, ack)
        return AckReply(Outcome.SUCCESS, ack.ckpt_id, base_due, completed, ack.version)

    def decline(self, declined: Decline) -> None:
        """A store could not take part: the acks of its task's attempt do not count any more."""
        pending = self._pending
        _log.warning("%s declines the checkpoint of batch %d: %s", declined.subtask, declined.batch_id, declined.reason)
        self._failures.count(FailureReason.DECLINED)
        if pending is not None and pending.version == declined.version:
            self._discard(pending.decline(declined))

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
        self._dropping.close(discards_checkpoints(status, job.config) and not self._completion.is_in_doubt)
        job.store.shutdown(status)
        job.cleaner.close(_CLOSE_SECONDS)

    # ---- what time brings --------------------------------------------------------------------------------------------

    @property
    def patience(self) -> float | None:
        """Seconds until `expire` will have something to do, unless a message comes; None if it will not."""
        if self._pending is None or self._open.config.timeout is None or self._completion.is_in_doubt:
            return None
        return max(0.0, self._expires - self._clock.monotonic())

    def expire(self) -> None:
        """Gives up the pending checkpoint if it has been pending for longer than it may."""
        pending, timeout = self._pending, self._open.config.timeout
        if pending is not None and self.patience == 0.0:
            detail = f"{pending.describe_missing()} did not acknowledge within {timeout:g} s ({TIMEOUT.key})"
            self._abort(Abort(FailureReason.EXPIRED, detail))

    def housekeeping(self) -> None:
        """What can wait until the ack is answered: checkpoints that are subsumed are dropped. Never raises."""
        self._dropping.drop_subsumed()

    # ---- completing --------------------------------------------------------------------------------------------------

    def _complete(self, pending: PendingCheckpoint, last: Ack) -> int:
        try:
            return self._completed(self._completion.complete(pending, self._trigger, self._base))
        except FencedError as e:
            self._fenced(e)
            raise
        except BaseException:
            self._tried = True
            pending.withdraw(last)
            self._discard([last])
            raise

    def _completed(self, state: CheckpointState) -> int:
        assert state.record is not None
        assert self._pending is not None
        self._completed_attempts, self._pending = self._pending.completed(), None
        self._aborted = None
        self._base = state
        self._discard_put_aside()
        self._dropping.completed()
        self._known.remember(state, own=True)
        self._tell(Event.COMPLETE, state.version, state.record.id)
        return state.record.id

    def _dropped(self, record: CheckpointRecord) -> None:
        self._known.forget(record.id)
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
            self._completed(state)

    def _fenced(self, error: FencedError) -> None:
        # The files stay: the new owner may have found the record, and go on from it.
        self._abort(Abort(FailureReason.FENCED, str(error)), keep_files=True)

    def _abort(self, abort: Abort, keep_files: bool = False) -> None:
        """Gives up the pending checkpoint: the files its tasks have written are deleted, their late acks discarded."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        self._aborted = pending, abort
        level = logging.INFO if abort.reason in _ORDERLY else logging.WARNING
        _log.log(level, "the checkpoint of batch %d is given up: %s", pending.batch_id, abort)
        self._failures.count(abort.reason)
        self._history.add(stats_of_failed(pending, abort, self._clock.now_ms()))
        if keep_files:
            self._put_aside.clear()
        else:
            self._discard(pending.acks.values())
            self._discard_put_aside()
        self._tell(Event.ABORTED, pending.version, reason=str(abort))

    def _discard(self, acks: Iterable[Ack]) -> None:
        """Deletes the files of acks that do not count, unless one that counts, or may yet, has named them as well.

        A file that a task has written together with others is put aside for as long as another ack may name it.
        """
        registry = self._open.registry
        counting = (self._pending.acks if self._pending is not None else {}, self._completion.acks_in_doubt)
        for ack in acks:
            used = {path for known in counting if ack.subtask in known for path in known[ack.subtask].paths}
            if ack.group_path is not None and (self._pending is not None or self._completion.is_in_doubt):
                self._put_aside.add(ack.group_path)
                used.add(ack.group_path)
            self._open.cleaner.submit(
                in_location(path) for path in ack.paths if path not in registry and path not in used
            )

    def _discard_put_aside(self) -> None:
        """Deletes what was put aside, now that no ack of its batch can count any more."""
        in_doubt = {path for ack in self._completion.acks_in_doubt.values() for path in ack.paths}
        unused = self._put_aside - self._open.registry.files() - in_doubt if self._put_aside else ()
        self._open.cleaner.submit(in_location(path) for path in sorted(unused))
        self._put_aside &= in_doubt

    # ---- replies -----------------------------------------------------------------------------------------------------

    def _refusal(self, ack: Ack, outcome: Outcome, counts: str | None, reason: str | None) -> AckReply:
        """The answer to an ack that does not count."""
        self._discard([ack])
        return AckReply(outcome, counts, completed_version=self._known.newest_own_version(), reason=reason)

    def _late_reply(self, ack: Ack, checkpoint: int) -> AckReply:
        """The answer to an ack of a version that this job has completed.

        To one that does not count it does not name the checkpoint: the next batch may have begun, and its acks would be
        taken for those that need not be told again.
        """
        counts = self._known.id_of(ack.version, ack.subtask)
        if counts == ack.ckpt_id:
            return AckReply(Outcome.SUCCESS, counts, False, checkpoint, self._known.newest_own_version())
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
        return TriggerReply(job.store.generation, job.max_parallelism, job.key_group_factors)

    def _tell(self, event: Event, version: int, checkpoint_id: int | None = None, reason: str | None = None) -> None:
        self._notify(Notification(self._trigger.job, event, version, checkpoint_id, reason))

    # ---- where a batch starts ----------------------------------------------------------------------------------------

    def _go_to_base_of(self, trigger: Trigger) -> None:
        """Makes the state that a batch starts from the base."""
        version = trigger.version - 1
        if self._base.version == version:
            return
        if version > 0 and self._aborted is not None and self._aborted[0].version == version:
            raise IncompleteCheckpointError(version, self._aborted[0].describe_missing())
        self._base = starting_point(replace(trigger, job=""), self._open.storage, self._open.store)
        self._known.remember(self._base, own=False)

    def _trigger_standalone(self, ack: Ack) -> None:
        """A store without a query commits any version it can load, without saying so before; the last commit counts."""
        if self._known.own_checkpoint(ack.version) is not None:
            if self._known.id_of(ack.version, ack.subtask) == ack.ckpt_id:
                return
            self._known.disown(ack.version)
        if self._pending is None or self._pending.version != ack.version:
            self.trigger(replace(self._trigger, batch_id=ack.version - 1, version=ack.version))


def _superseded(pending: PendingCheckpoint, trigger: Trigger) -> Abort:
    if pending.version == trigger.version:
        return Abort(FailureReason.STORAGE, "it could not be completed, and its batch begins anew")
    missing = pending.describe_missing()
    return Abort(FailureReason.INCOMPLETE, f"{missing} did not acknowledge before batch {trigger.batch_id} began")
