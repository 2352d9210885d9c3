"""A checkpoint that waits for its subtasks (Flink: `PendingCheckpoint`)."""

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
from spark_ckpt.coordinator.failures import FailureReason
from spark_ckpt.coordinator.messages import Ack, Decline, Operator, Outcome, Task, TaskFailed
from spark_ckpt.format.keys import StoreKey, SubtaskKey

_MOST_NAMED = 8


class PendingCheckpoint:
    """Acks received by subtask and attempt. Pure bookkeeping; an ack costs the same at any
    parallelism.

    One attempt of a task is authorised at a time: the first that asks. Later attempts are rejected until the first is
    known to have failed, which drops its acks. These are the rules of Spark's `OutputCommitCoordinator`, with four
    more, since stateful stages are not only result stages:

    - a stage may run twice in one batch (foreachBatch that uses its DataFrame twice): the first ack of a subtask
    counts;
    - a new attempt of the stage repeats tasks that have succeeded: likewise;
    - a task that succeeded is reported as resubmitted when its executor is lost: its state is safe, so its acks stay;
    - an ack that another attempt was told to count stays even if it turns out that its own attempt has failed.

    Args:
        operators: whose subtasks must acknowledge.
        batch_id: the batch.
        version: version of the state that it leads to.
        triggered_ms: when its batch began, in milliseconds since 1970 UTC.

    Attributes:
        acks: those that count.
        arrived_ms: when each of them came, in milliseconds since 1970 UTC.
        failures: what has failed so far and was made good, by reason.
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
        """Takes an ack, or says why not.

        Args:
            ack: of this version.
            now_ms: when it came, in milliseconds since 1970 UTC.
        """
        key = ack.subtask
        if not self.knows(key):
            reason = f"{key} is no subtask of batch {self.batch_id}: the plan of the batch does not have it"
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
        """Forgets an ack that was taken, because the checkpoint could not be completed with it."""
        if self.acks.get(ack.subtask) is ack:
            del self.acks[ack.subtask]
            self._acked_by[TaskKey.of(ack.task)].remove(ack.subtask)

    def task_failed(self, failure: TaskFailed) -> list[Ack]:
        """Takes note of a failed attempt: another one may take its place.

        Returns:
            Its acks, which do not count any more.
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
        """A store of an attempt cannot take part, so the attempt is about to fail.

        Returns:
            The acks of the attempt, which do not count any more.
        """
        self.failures[FailureReason.DECLINED] += 1
        return self._give_up(declined.task)

    def attempts_at_completion(self) -> CompletedAttempts:
        """Attempt history for answering late acks."""
        return CompletedAttempts(self.version, self.acks, self._attempts)

    def missing(self) -> list[SubtaskKey]:
        """The subtasks that have not acknowledged."""
        return [
            key
            for (operator_id, store), parallelism in self.parallelism.items()
            for partition in range(parallelism)
            if (key := SubtaskKey(operator_id, store, partition)) not in self.acks
        ]

    def describe_missing(self) -> str:
        """The subtasks that have not acknowledged, for a person."""
        missing = self.missing()
        named = "; ".join(str(key) for key in missing[:_MOST_NAMED])
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        return f"{len(missing)} of {self.expected} subtasks ({named}{more})"

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
