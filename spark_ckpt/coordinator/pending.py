"""A checkpoint that waits for its subtasks (Flink: `PendingCheckpoint`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from spark_ckpt.coordinator.failures import FailureReason
from spark_ckpt.coordinator.messages import Ack, Decline, Operator, Outcome, StoreKey, SubtaskKey, Task, TaskFailed

_MOST_NAMED = 8

# Spark reports a task of a shuffle stage again that has succeeded when the executor with its output is lost.
_RESUBMITTED = "Resubmitted"


class Decision(NamedTuple):
    """What becomes of an ack, the id of the state that counts for its subtask, and why the ack does not count."""

    outcome: Outcome
    ckpt_id: str | None
    reason: str | None = None


class _TaskKey(NamedTuple):
    stage_id: int
    partition: int


class _Attempt(NamedTuple):
    stage_attempt: int
    attempt_number: int

    def __str__(self) -> str:
        return f"attempt {self.attempt_number} of stage attempt {self.stage_attempt}"


class PendingCheckpoint:
    """Which subtasks have acknowledged, and by which attempt. Pure bookkeeping; an ack costs the same at any
    parallelism.

    One attempt of a task is authorised at a time: the first that asks. Another one is denied until the first is
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
        self._authorised: dict[_TaskKey, _Attempt] = {}
        self._resubmitted: set[_TaskKey] = set()
        self._failed: set[tuple[_TaskKey, _Attempt]] = set()
        self._acked_by: dict[_TaskKey, list[SubtaskKey]] = {}
        self._relied_on: set[SubtaskKey] = set()

    @property
    def is_complete(self) -> bool:
        """Whether every subtask has acknowledged."""
        return len(self.acks) == self.expected

    def knows(self, key: SubtaskKey) -> bool:
        """Whether a subtask belongs to the batch."""
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
        task, attempt = _TaskKey(ack.task.stage_id, ack.task.partition), _attempt(ack.task)
        counted = self.acks.get(key)
        if counted is not None and counted.ckpt_id == ack.ckpt_id:
            return Decision(Outcome.SUCCESS, ack.ckpt_id)
        if (task, attempt) in self._failed:
            return _denied(key, attempt, "is known to have failed")
        if counted is not None:
            return self._second(counted, task, attempt)
        authorised = self._authorised.setdefault(task, attempt)
        if authorised != attempt:
            return _denied(key, attempt, f"comes after {authorised}, which is not known to have failed")
        self.acks[key] = ack
        self.arrived_ms[key] = now_ms
        self._acked_by.setdefault(task, []).append(key)
        return Decision(Outcome.SUCCESS, ack.ckpt_id)

    def withdraw(self, ack: Ack) -> None:
        """Forgets an ack that was taken, because the checkpoint could not be completed with it."""
        if self.acks.get(ack.subtask) is ack:
            del self.acks[ack.subtask]
            self._acked_by[_TaskKey(ack.task.stage_id, ack.task.partition)].remove(ack.subtask)

    def task_failed(self, failure: TaskFailed) -> list[Ack]:
        """Takes note of a failed attempt: another one may take its place.

        Returns:
            Its acks, which do not count any more.
        """
        task = _TaskKey(failure.stage_id, failure.partition)
        attempt = _Attempt(failure.stage_attempt, failure.attempt_number)
        if failure.reason.startswith(_RESUBMITTED):
            if self._authorised.get(task) == attempt:
                self._resubmitted.add(task)
            return []
        dropped = self._give_up(task, attempt)
        if dropped:
            self.failures[FailureReason.TASK_FAILED] += 1
        return dropped

    def decline(self, declined: Decline) -> list[Ack]:
        """A store of an attempt cannot take part, so the attempt is about to fail.

        Returns:
            The acks of the attempt, which do not count any more.
        """
        self.failures[FailureReason.DECLINED] += 1
        return self._give_up(_TaskKey(declined.task.stage_id, declined.task.partition), _attempt(declined.task))

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

    def _give_up(self, task: _TaskKey, attempt: _Attempt) -> list[Ack]:
        self._failed.add((task, attempt))
        if self._authorised.get(task) != attempt:
            return []
        del self._authorised[task]
        self._resubmitted.discard(task)
        return [self.acks.pop(key) for key in self._acked_by.pop(task, ()) if key not in self._relied_on]

    def _second(self, counted: Ack, task: _TaskKey, attempt: _Attempt) -> Decision:
        """An ack of a subtask that has acknowledged another state already."""
        same_task = task == (counted.task.stage_id, counted.task.partition)
        if same_task and task not in self._resubmitted:
            first = _attempt(counted.task)
            if attempt != first and attempt.stage_attempt == first.stage_attempt:
                return _denied(counted.subtask, attempt, f"comes after {first}, which has acknowledged")
        self._relied_on.add(counted.subtask)
        return Decision(Outcome.DUPLICATE, counted.ckpt_id)


def _attempt(task: Task) -> _Attempt:
    return _Attempt(task.stage_attempt, task.attempt_number)


def _denied(key: SubtaskKey, attempt: _Attempt, why: str) -> Decision:
    return Decision(Outcome.DENIED, None, f"{key}: {attempt} {why}")
