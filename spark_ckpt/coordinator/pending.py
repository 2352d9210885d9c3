"""Checkpoint with missing acknowledgements (Flink: `PendingCheckpoint`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from spark_ckpt.coordinator.attempts import (
    Attempt,
    Attempts,
    CompletedAttempts,
    Decision,
    TaskKey,
    denied,
    is_resubmission,
)
from spark_ckpt.coordinator.failures import Abort, FailureReason
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.messages import Ack, Decline, Operator, Outcome, Task, TaskFailed, Trigger

_MAX_NAMED = 8


class PendingCheckpoint:
    """Acks by subtask and attempt. Pure bookkeeping, with constant cost per ack.

    One attempt of a task is authorised at a time: the first to acknowledge. Later attempts are rejected until the first
    is known to have failed, which drops its acks. These are the rules of Spark's `OutputCommitCoordinator`, with four
    more, because stateful stages are not only result stages:

    - a stage may run twice in one batch (foreachBatch that uses its DataFrame twice): the first ack of a subtask
    counts;
    - a new attempt of the stage may repeat succeeded tasks: the first ack of a subtask counts here too;
    - a succeeded task is reported as resubmitted when its executor is lost: its state is safe, so its acks stay;
    - an ack that was named to another attempt as the counted one stays, even if its own attempt fails later.

    Args:
        operators: operators whose subtasks must acknowledge.
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        triggered_ms: start of the batch, milliseconds since 1970 UTC.

    Attributes:
        acks: acks that count.
        arrived_ms: arrival time of each of `acks`, milliseconds since 1970 UTC.
        acknowledge_us: microseconds from there to the answer, of those of `acks` that are answered.
        failures: number of recovered failures by reason.
    """

    def __init__(self, operators: Iterable[Operator], batch_id: int, version: int, triggered_ms: int) -> None:
        self.batch_id = batch_id
        self.version = version
        self.triggered_ms = triggered_ms
        self.failures: Counter[FailureReason] = Counter()
        self.parallelism = {
            StoreKey(operator.operator_id, store): operator.parallelism
            for operator in operators
            for store in operator.stores
        }
        self.acks: dict[SubtaskKey, Ack] = {}
        self.arrived_ms: dict[SubtaskKey, int] = {}
        self.acknowledge_us: dict[SubtaskKey, int] = {}
        self.expected = sum(self.parallelism.values())
        self._attempts = Attempts()
        self._authorised: dict[TaskKey, Attempt] = {}
        self._acked_by: dict[TaskKey, list[SubtaskKey]] = {}
        self._relied_on: set[SubtaskKey] = set()

    @property
    def is_complete(self) -> bool:
        """True if every subtask has acknowledged."""
        return len(self.acks) == self.expected

    def knows(self, key: SubtaskKey) -> bool:
        """True if a subtask belongs to the batch."""
        return 0 <= key.partition < self.parallelism.get(key.of_operator, 0)

    def acknowledge(self, ack: Ack, now_ms: int) -> Decision:
        """Accept or reject an ack.

        Args:
            ack: ack of this version.
            now_ms: arrival time, milliseconds since 1970 UTC.
        """
        key = ack.subtask
        if not self.knows(key):
            reason = f"{key} is not a subtask of batch {self.batch_id}: the plan of the batch lacks it"
            return Decision(Outcome.UNKNOWN, None, reason)
        counted = self.acks.get(key)
        if counted is not None and counted.state_id == ack.state_id:
            return Decision(Outcome.SUCCESS, ack.state_id)
        if (denial := self._attempts.first(key, ack.task)) is not None:
            return denial
        if counted is not None:
            return self._second(counted, ack)
        task, attempt = TaskKey.of(ack.task), Attempt.of(ack.task)
        authorised = self._authorised.setdefault(task, attempt)
        if authorised != attempt:
            return denied(key, ack.task, f"comes after {authorised}, which is not known to have failed")
        self.acks[key] = ack
        self.arrived_ms[key] = now_ms
        self._acked_by.setdefault(task, []).append(key)
        return Decision(Outcome.SUCCESS, ack.state_id)

    def withdraw(self, ack: Ack) -> None:
        """Withdraw the last ack after a failed completion."""
        if self.acks.get(ack.subtask) is ack:
            del self.acks[ack.subtask]
            self._acked_by[TaskKey.of(ack.task)].remove(ack.subtask)

    def task_failed(self, failure: TaskFailed) -> list[Ack]:
        """Record a failed attempt, which another attempt may replace.

        Returns:
            Dropped acks of the attempt.
        """
        if is_resubmission(failure):
            if self._authorised.get(TaskKey.of(failure)) == Attempt.of(failure):
                self._attempts.resubmitted(TaskKey.of(failure))
            return []
        dropped = self._give_up(failure)
        if dropped:
            self.failures[FailureReason.TASK_FAILED] += 1
        return dropped

    def decline(self, declined: Decline) -> list[Ack]:
        """Record the decline of a store, whose attempt is about to fail.

        Returns:
            Dropped acks of the attempt.
        """
        self.failures[FailureReason.DECLINED] += 1
        return self._give_up(declined.task)

    def attempts_at_completion(self) -> CompletedAttempts:
        """Attempt history for answering late acks."""
        return CompletedAttempts(self.version, self.acks, self._attempts)

    def missing(self) -> list[SubtaskKey]:
        """Subtasks without an ack."""
        return [
            key
            for (operator_id, store), parallelism in self.parallelism.items()
            for partition in range(parallelism)
            if (key := SubtaskKey(operator_id, store, partition)) not in self.acks
        ]

    def describe_missing(self) -> str:
        """Subtasks without an ack, as text."""
        missing = self.missing()
        named = "; ".join(str(key) for key in missing[:_MAX_NAMED])
        more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
        return f"{len(missing)} of {self.expected} subtasks ({named}{more})"

    @property
    def lack(self) -> str:
        """What keeps it from completing."""
        return (
            "its end offsets did not arrive" if self.is_complete else f"{self.describe_missing()} did not acknowledge"
        )

    def superseded_by(self, trigger: Trigger) -> Abort:
        """Abort because of a trigger."""
        if self.version == trigger.version:
            return Abort(FailureReason.STORAGE, "its completion failed, and its batch starts again")
        return Abort(FailureReason.INCOMPLETE, f"{self.lack} before batch {trigger.batch_id} began")

    def _give_up(self, failed: Task | TaskFailed) -> list[Ack]:
        task = TaskKey.of(failed)
        self._attempts.failed(failed)
        if self._authorised.get(task) != Attempt.of(failed):
            return []
        del self._authorised[task]
        self._attempts.forget_resubmission(task)
        return [self.acks.pop(key) for key in self._acked_by.pop(task, ()) if key not in self._relied_on]

    def _second(self, counted: Ack, ack: Ack) -> Decision:
        decision = self._attempts.second(ack.subtask, counted.task, counted.state_id, ack.task)
        if decision.outcome is Outcome.DUPLICATE:
            self._relied_on.add(ack.subtask)
        return decision
