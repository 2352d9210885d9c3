"""Failed task attempts, and decisions on later attempts of the same tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import Ack, Outcome, Task, TaskFailed

# When an executor is lost, Spark reports succeeded tasks of shuffle stages again, because their output is gone.
_RESUBMITTED = "Resubmitted"


class Decision(NamedTuple):
    """Outcome of an ack, state id that counts for its subtask, and reason of a rejection."""

    outcome: Outcome
    state_id: str | None
    reason: str | None = None


class TaskKey(NamedTuple):
    """A task of a stage."""

    stage_id: int
    partition: int

    @classmethod
    def of(cls, task: Task | TaskFailed) -> TaskKey:
        """Key of an attempt's task."""
        return cls(task.stage_id, task.partition)


class Attempt(NamedTuple):
    """Attempt of a task."""

    stage_attempt: int
    attempt_number: int

    @classmethod
    def of(cls, task: Task | TaskFailed) -> Attempt:
        """Key of an attempt."""
        return cls(task.stage_attempt, task.attempt_number)

    def __str__(self) -> str:
        return f"attempt {self.attempt_number} of stage attempt {self.stage_attempt}"


class Attempts:
    """Known ends of task attempts."""

    def __init__(self) -> None:
        self._failed: set[tuple[TaskKey, Attempt]] = set()
        self._resubmitted: set[TaskKey] = set()

    def has_failed(self, task: Task) -> bool:
        """True if an attempt is known to have failed."""
        return bool(self._failed) and (TaskKey.of(task), Attempt.of(task)) in self._failed

    def failed(self, task: Task | TaskFailed) -> None:
        """Record an attempt that has failed or is about to fail."""
        self._failed.add((TaskKey.of(task), Attempt.of(task)))

    def resubmitted(self, task: TaskKey) -> None:
        """Record a succeeded task that runs again because its output was lost."""
        self._resubmitted.add(task)

    def forget_resubmission(self, task: TaskKey) -> None:
        """Forget a resubmission whose attempt has failed after all."""
        self._resubmitted.discard(task)

    def first(self, key: SubtaskKey, task: Task) -> Decision | None:
        """Rejection of an ack from a failed attempt; None for any other attempt."""
        return denied(key, task, "is known to have failed") if self.has_failed(task) else None

    def second(self, key: SubtaskKey, counted: Task, state_id: str, task: Task) -> Decision:
        """Decision on an ack of a subtask with another acknowledged state.

        Args:
            key: subtask.
            counted: attempt whose ack counts.
            state_id: state that `counted` acknowledged.
            task: later attempt.
        """
        first, second, same = Attempt.of(counted), Attempt.of(task), TaskKey.of(task)
        is_copy = TaskKey.of(counted) == same and first.stage_attempt == second.stage_attempt and first != second
        if is_copy and same not in self._resubmitted and not self.has_failed(counted):
            return denied(key, task, f"comes after {first}, which has acknowledged")
        return Decision(Outcome.DUPLICATE, state_id)


def is_resubmission(failure: TaskFailed) -> bool:
    """True if a succeeded task runs again because its output was lost."""
    return failure.reason.startswith(_RESUBMITTED)


def denied(key: SubtaskKey, task: Task, why: str) -> Decision:
    """Rejection of an ack because another attempt is authorised."""
    return Decision(Outcome.DENIED, None, f"{key}: {Attempt.of(task)} {why}")


class CompletedAttempts:
    """Attempt history of a completed checkpoint, for answering late acks.

    A speculative copy must not win against the attempt whose state is in the checkpoint: Spark would combine the output
    of one attempt with the state of another.

    Args:
        version: state version of the checkpoint.
        acks: acks in the checkpoint.
        attempts: known attempts at completion.
    """

    def __init__(self, version: int, acks: Mapping[SubtaskKey, Ack], attempts: Attempts) -> None:
        self.version = version
        self._tasks = {key: ack.task for key, ack in acks.items()}
        self._attempts = attempts

    @cached_property
    def _counted(self) -> set[tuple[TaskKey, Attempt]]:
        """Attempts whose state is in the checkpoint: needed once an executor is lost."""
        return {(TaskKey.of(task), Attempt.of(task)) for task in self._tasks.values()}

    def late(self, ack: Ack, state_id: str) -> Decision:
        """Decision on an ack of a subtask whose counted state is another.

        Args:
            ack: ack of this version.
            state_id: counted state.
        """
        if (denial := self._attempts.first(ack.subtask, ack.task)) is not None:
            return denial
        if (counted := self._tasks.get(ack.subtask)) is None:  # it was told that completing had failed
            return Decision(Outcome.DUPLICATE, state_id)
        return self._attempts.second(ack.subtask, counted, state_id, ack.task)

    def task_failed(self, failure: TaskFailed) -> None:
        """Record a failed attempt. Another attempt may replace it, with the counted state."""
        if not is_resubmission(failure):
            self._attempts.failed(failure)
        elif (TaskKey.of(failure), Attempt.of(failure)) in self._counted:
            self._attempts.resubmitted(TaskKey.of(failure))
