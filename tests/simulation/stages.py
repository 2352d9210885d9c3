"""A stage of a batch, with Spark's rules for its task attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import Operator, Task, TaskFailed, Trigger
from tests.simulation.bridge import BridgeError
from tests.simulation.executor import Denied, Executor, TaskError
from tests.simulation.scheduler import Group, Mailbox

if TYPE_CHECKING:
    from tests.simulation.spark import Run

MAX_FAILURES = 4
"""Value of `spark.task.maxFailures`."""

MAX_DENIALS = 60

REAL_TIME_FAILURES = 1
"""In real-time mode a task is not attempted again."""


class BatchFailed(Exception):  # noqa: N818
    """A task failed too often, or Spark found its own log changed."""


@dataclass(eq=False)
class Attempt:
    """One attempt of a task."""

    stage_attempt: int
    partition: int
    number: int
    executor: Executor
    group: Group
    ids: dict[SubtaskKey, str] = field(default_factory=dict)


@dataclass(slots=True)
class Ended:
    attempt: Attempt
    reason: str | None
    is_denial: bool = False


class TaskSet:
    """A stage of a batch: runs attempts of its tasks until each task has succeeded once."""

    def __init__(self, run: Run, trigger: Trigger, operators: tuple[Operator, ...], is_map: bool) -> None:
        self.stage_id = run.driver.next_stage()
        self.done: dict[int, Attempt] = {}
        self.ids: dict[SubtaskKey, str] = {}
        """State ids counted by Spark: for each subtask, the id from its first successful attempt."""
        self._run, self._trigger, self._operators, self._is_map = run, trigger, operators, is_map
        self._query = run.query
        self._read = run.read  # an attempt may begin after its batch, when the run reads further
        self._world, self._rng = run.driver.world, run.driver.rng
        self._ends: Mailbox[Ended] = Mailbox(self._world.scheduler)
        self._running: list[Attempt] = []
        self._numbers: dict[tuple[int, int], int] = {}
        self._failures: dict[int, int] = {}
        self._denials = 0
        self._stage_attempt = 0

    def go(self, partitions: list[int]) -> None:
        """Runs the tasks.

        Raises:
            BatchFailed: a task failed too often.
        """
        driver, profile = self._run.driver, self._world.profile
        driver.stages.append(self)
        try:
            for partition in partitions:
                self._launch(partition)
                if not self._trigger.is_real_time and self._rng.random() < profile.speculation:
                    self._launch(partition)
            while any(partition not in self.done for partition in partitions):
                ended = self._ends.get(300.0)
                if ended is None:
                    raise BatchFailed("a task does not end")
                self._handle(ended)
        finally:
            for attempt in list(self._running):
                self._kill(attempt)
            if self in driver.stages:
                driver.stages.remove(self)

    def lost(self, executor: Executor) -> None:
        """Handles the loss of an executor, including the output of its map tasks."""
        for attempt in [a for a in self._running if a.executor is executor]:
            self._ends.put(Ended(attempt, "ExecutorLostFailure"))
        for partition, attempt in list(self.done.items()):
            if self._is_map and attempt.executor is executor:
                self._world.count("task resubmitted")
                self._run.driver.listener.put(self._failure(attempt, "Resubmitted"))
                del self.done[partition]
                self._launch(partition)

    def rerun(self, partitions: list[int]) -> None:
        """Runs a new attempt of the stage, for tasks whose output a later stage cannot fetch."""
        self._world.count("stage run again")
        self._stage_attempt += 1
        self._failures.clear()
        for partition in partitions:
            del self.done[partition]
        self.go(partitions)

    def _handle(self, ended: Ended) -> None:
        attempt, partition = ended.attempt, ended.attempt.partition
        if attempt not in self._running:
            return
        self._running.remove(attempt)
        if ended.reason is None:
            if partition not in self.done:
                self.done[partition] = attempt
                for key, state_id in attempt.ids.items():
                    self.ids.setdefault(key, state_id)
                for other in [a for a in self._running if a.partition == partition]:
                    self._kill(other)
            return
        self._run.driver.listener.put(self._failure(attempt, ended.reason))
        if ended.is_denial:
            self._denials += 1
        elif ended.reason != "ExecutorLostFailure":
            self._failures[partition] = self._failures.get(partition, 0) + 1
        most = REAL_TIME_FAILURES if self._trigger.is_real_time else MAX_FAILURES
        if self._failures.get(partition, 0) >= most or self._denials > MAX_DENIALS:
            raise BatchFailed(f"task {partition} failed: {ended.reason}")
        if partition not in self.done and not any(a.partition == partition for a in self._running):
            if self._rng.random() < self._world.profile.fetch_failure:
                # The other attempts continue although their stage attempt is over, and count if they succeed.
                self._stage_attempt += 1
                self._world.count("stage attempted again")
            self._launch(partition, 0.5 if ended.is_denial else 0.05)

    def _launch(self, partition: int, delay: float = 0.0) -> None:
        key = (self._stage_attempt, partition)
        number = self._numbers[key] = self._numbers.get(key, -1) + 1
        busy = [a.executor for a in self._running if a.partition == partition]
        executor = self._run.driver.executor(partition, busy)
        group = Group(f"task {self.stage_id}.{self._stage_attempt}/{partition}.{number}", executor.group)
        attempt = Attempt(self._stage_attempt, partition, number, executor, group)
        self._running.append(attempt)
        delay += self._rng.random() * 0.2
        self._world.scheduler.spawn(group.name, group, lambda: self._ends.put(self._work(attempt)), delay)

    def _work(self, attempt: Attempt) -> Ended:
        """Runs a task attempt: opens its stores, computes, commits."""
        task = Task(self.stage_id, attempt.stage_attempt, attempt.partition, attempt.number)
        query, trigger = self._query, self._trigger
        keys = [SubtaskKey(o.operator_id, store, attempt.partition) for o in self._operators for store in o.stores]
        try:
            changes = {}
            for key in keys:
                store = attempt.executor.store(trigger.job, key)
                rows = store.open(trigger, self._run.wanted(key), self._read[0])
                changes[key] = query.changes_between(*self._read, key, rows)
                store.look_up(trigger, changes[key])
            for key in keys:
                store = attempt.executor.store(trigger.job, key)
                attempt.ids[key] = store.commit(trigger, task, changes[key])
            if self._rng.random() < self._world.faults.error:
                raise TaskError("the sink cannot be written")
        except Denied:
            return Ended(attempt, "TaskCommitDenied", True)
        except (SparkCkptError, BridgeError, TaskError) as e:
            self._world.count(f"task failed: {type(e).__name__}")
            return Ended(attempt, f"{type(e).__name__}: {e}")
        return Ended(attempt, None)

    def _kill(self, attempt: Attempt) -> None:
        """Interrupts an attempt that is no longer needed, possibly too late to stop its work."""
        if attempt in self._running:
            self._running.remove(attempt)
        self._run.driver.listener.put(self._failure(attempt, "TaskKilled"))
        scheduler = self._world.scheduler
        delay = self._rng.choice((0.0, 0.05, 5.0))
        scheduler.spawn("kill task", attempt.executor.group, lambda: scheduler.kill(attempt.group), delay)

    def _failure(self, attempt: Attempt, reason: str) -> TaskFailed:
        return TaskFailed(
            self.stage_id, attempt.stage_attempt, attempt.partition, attempt.number, reason, job=self._trigger.job
        )
