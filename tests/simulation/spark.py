"""Spark's driver: the loop over micro-batches, its own logs, and its rules for stages and task attempts."""

from __future__ import annotations

import json
import random
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from spark_ckpt.coordinator.messages import Close, Notification, Operator, Source, SubtaskKey, Task, TaskFailed, Trigger
from spark_ckpt.errors import SparkCkptError
from tests.simulation.bridge import Bridge, BridgeError
from tests.simulation.executor import Denied, Executor, TaskError
from tests.simulation.scheduler import Group, Mailbox, Promise

if TYPE_CHECKING:
    from tests.simulation.world import World

MOST_FAILURES = 4
"""As `spark.task.maxFailures`."""

MOST_DENIALS = 60
PREFIX = "spark.sql.streaming.stateStore.ckpt."


class BatchFailed(Exception):  # noqa: N818
    """A task has failed too often, or Spark has found its own log changed."""


class Ending(Enum):
    """How a run of the query ended."""

    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "cancelled"


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
    """A stage of a batch: attempts of its tasks until each has succeeded once."""

    def __init__(self, run: Run, trigger: Trigger, operators: tuple[Operator, ...], is_map: bool) -> None:
        self.stage_id = run.driver.next_stage()
        self.done: dict[int, Attempt] = {}
        self.ids: dict[SubtaskKey, str] = {}
        """What Spark counts: of each subtask the id that its first successful attempt reported."""
        self._run, self._trigger, self._operators, self._is_map = run, trigger, operators, is_map
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
            BatchFailed: one has failed too often.
        """
        driver, profile = self._run.driver, self._world.profile
        driver.stages.append(self)
        try:
            for partition in partitions:
                self._launch(partition)
                if self._rng.random() < profile.speculation:
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
        """An executor is gone, with the results of the map tasks that ran there."""
        for attempt in [a for a in self._running if a.executor is executor]:
            self._ends.put(Ended(attempt, "ExecutorLostFailure"))
        for partition, attempt in list(self.done.items()):
            if self._is_map and attempt.executor is executor:
                self._world.count("task resubmitted")
                self._run.driver.listener.put(self._failure(attempt, "Resubmitted"))
                del self.done[partition]
                self._launch(partition)

    def rerun(self, partitions: list[int]) -> None:
        """A new attempt of the stage, for tasks whose output a later stage cannot fetch."""
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
                for key, ckpt_id in attempt.ids.items():
                    self.ids.setdefault(key, ckpt_id)
                for other in [a for a in self._running if a.partition == partition]:
                    self._kill(other)
            return
        self._run.driver.listener.put(self._failure(attempt, ended.reason))
        if ended.is_denial:
            self._denials += 1
        elif ended.reason != "ExecutorLostFailure":
            self._failures[partition] = self._failures.get(partition, 0) + 1
        if self._failures.get(partition, 0) >= MOST_FAILURES or self._denials > MOST_DENIALS:
            raise BatchFailed(f"task {partition} failed: {ended.reason}")
        if partition not in self.done and not any(a.partition == partition for a in self._running):
            if self._rng.random() < self._world.profile.fetch_failure:
                # The other attempts go on although their stage attempt is over, and count if they succeed.
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
        """What a task attempt does: opens its stores, computes, commits."""
        task = Task(self.stage_id, attempt.stage_attempt, attempt.partition, attempt.number)
        query, trigger = self._world.query, self._trigger
        keys = [SubtaskKey(o.operator_id, store, attempt.partition) for o in self._operators for store in o.stores]
        try:
            changes = {}
            for key in keys:
                rows = attempt.executor.store(trigger.job, key).open(trigger, self._run.wanted(key))
                changes[key] = query.changes(trigger.version, key, rows)
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
        """An attempt that is not needed any more is interrupted, or not before it has done its work."""
        if attempt in self._running:
            self._running.remove(attempt)
        self._run.driver.listener.put(self._failure(attempt, "TaskKilled"))
        scheduler = self._world.scheduler
        delay = self._rng.choice((0.0, 0.05, 5.0))
        scheduler.spawn("kill task", attempt.executor.group, lambda: scheduler.kill(attempt.group), delay)

    def _failure(self, attempt: Attempt, reason: str) -> TaskFailed:
        return TaskFailed(
            self._trigger.job, self.stage_id, attempt.stage_attempt, attempt.partition, attempt.number, reason
        )


class Run:
    """One run of the query: from what Spark's logs say to the last batch, or to an error."""

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver, self.world = driver, driver.world
        self.run_id = f"{driver.group.name}-run{number}"
        self.group = Group(self.run_id, driver.group)
        self.ended: Promise[tuple[Ending, str]] = Promise(driver.world.scheduler)
        self._ids: dict[str, str] = {}

    def go(self) -> None:
        """Runs batches. Batches and commits are what Spark's `MicroBatchExecution` writes in this order."""
        try:
            batch = self._first_batch()
            while batch < self.world.batches:
                self._batch(batch)
                batch += 1
        except BatchFailed as e:
            self.ended.set((Ending.FAILED, str(e)))
        else:
            self.ended.set((Ending.FINISHED, ""))

    def wanted(self, key: SubtaskKey) -> str | None:
        """The id that Spark asks for: with the second format of its checkpoints, the one in its commit log."""
        return self._ids.get(str(tuple(key))) if self.world.profile.checkpoint_format == 2 else None

    def _first_batch(self) -> int:
        done = [int(file.name) for file in self.world.disk.list("commits") if not file.is_directory]
        last = max(done, default=-1)
        if last >= 0:
            self._ids = json.loads(self.world.disk.read(f"commits/{last}") or b"{}")
        return last + 1

    def _batch(self, batch: int) -> None:
        world, rng = self.world, self.driver.rng
        world.scheduler.sleep(rng.random() * 0.1)
        world.disk.create(f"offsets/{batch}", b"v1\n{}\n%d" % batch)
        trigger = self._trigger(batch)
        world.trace(f"{self.run_id}: batch {batch} begins")
        self.driver.began.append(world.scheduler.now)
        uses = 2 if rng.random() < world.profile.twice else 1
        ids: dict[SubtaskKey, str] = {}
        for _ in range(uses):
            stages = []
            for number, operators in enumerate(world.query.stages):
                stage = TaskSet(self, trigger, operators, is_map=number + 1 < len(world.query.stages))
                stages.append(stage)
                stage.go(list(range(operators[0].parallelism)))
                if number and rng.random() < world.profile.fetch_failure:
                    again = stages[number - 1]
                    lost = [p for p in sorted(again.done) if rng.random() < 0.5]
                    if lost:
                        again.rerun(lost)
            for stage in stages:
                for key, ckpt_id in stage.ids.items():
                    ids.setdefault(key, ckpt_id)
        world.scheduler.sleep(rng.random() ** 2)
        content = {str(tuple(key)): ckpt_id for key, ckpt_id in ids.items()}
        world.checks.before_commit(self.run_id, batch, ids)
        if not world.disk.create(f"commits/{batch}", json.dumps(content).encode()):
            raise BatchFailed(f"commits/{batch} exists: another run has committed it")
        world.trace(f"{self.run_id}: batch {batch} is committed")
        self._ids = content

    def _trigger(self, batch: int) -> Trigger:
        profile = self.world.profile
        return Trigger(
            job=self.run_id,
            location="sim://location",
            query_id="11111111-2222-3333-4444-555555555555",
            batch_id=batch,
            version=batch + 1,
            operators=self.world.query.operators,
            sources=(Source("source", f'{{"topic":{{"0":{batch}}}}}'),),
            checkpoint_format=profile.checkpoint_format,
            settings={
                PREFIX + "maxParallelism": str(self.world.query.max_parallelism),
                PREFIX + "store": profile.store,
                PREFIX + "zookeeper.quorum": "zookeeper:2181",
                **{PREFIX + key: value for key, value in profile.settings.items()},
            },
            spark_version="4.2.0",
        )


class Driver:
    """A driver JVM with its executors, running the query again and again until it is through or somebody has enough."""

    def __init__(self, world: World, name: str, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.group = Group(name)
        self.bridge = Bridge(world, self.group, rng, self._notify)
        self.began: deque[float] = deque(maxlen=2)
        """When the batch that runs has begun, and the one before it."""
        self.listener: Mailbox[TaskFailed | Close] = Mailbox(world.scheduler)
        self.stages: list[TaskSet] = []
        self.executors: list[Executor] = []
        self.run: Run | None = None
        self.ended = False
        self._executors = 0
        self._stages = 0
        for _ in range(world.profile.executors):
            self._new_executor()
        world.scheduler.spawn(f"{name} listener bus", self.group, self._listen)
        world.scheduler.spawn(name, self.group, self._main)

    def next_stage(self) -> int:
        self._stages += 1
        return self._stages

    def executor(self, partition: int, busy: list[Executor]) -> Executor:
        """Where an attempt runs: where the store is, or somewhere else; never beside another attempt of its task."""
        free = [executor for executor in self.executors if executor not in busy]
        if not free:
            return self._new_executor()
        return free[partition % len(free)] if self.rng.random() < 0.8 else self.rng.choice(free)

    def lose_executor(self) -> None:
        """An executor dies; the cluster gives another one."""
        if not self.executors:
            return
        executor = self.rng.choice(self.executors)
        self.executors.remove(executor)
        self.world.scheduler.kill(executor.group)
        self._new_executor()
        for stage in list(self.stages):
            stage.lost(executor)

    def stop_run(self) -> None:
        """The query is stopped in the middle of whatever it does; tasks that run are interrupted a little later."""
        run = self.run
        if run is not None:
            self.stages.clear()
            self.world.scheduler.kill(run.group)
            run.ended.set((Ending.STOPPED, "stopped"))

    def oldest(self) -> float:
        """When the oldest file may have been written that a checkpoint of this driver can yet be the first to name."""
        return min([*self.began, *(executor.oldest() for executor in self.executors)], default=inf)

    def _notify(self, notification: Notification) -> None:
        """Executors are told something: late, more than once or never."""
        for executor in self.executors:
            for _ in range(self.rng.choice((0, 1, 1, 1, 2))):
                delay = self.rng.random() ** 3 * 2
                self.world.scheduler.spawn(
                    "notification", executor.group, partial(executor.notified, notification), delay
                )

    def _new_executor(self) -> Executor:
        self._executors += 1
        executor = Executor(self.world, self, f"{self.group.name}/executor{self._executors}", self.rng)
        self.executors.append(executor)
        return executor

    def _main(self) -> None:
        world = self.world
        number = 0
        while True:
            number += 1
            self.run = run = Run(self, number)
            world.count("runs")
            world.scheduler.spawn(run.run_id, run.group, run.go)
            end = run.ended.wait(1e9)
            assert end is not None
            ending, why = end
            world.trace(f"{run.run_id}: {ending.value} {why}")
            self.listener.put(Close(run.run_id, ending.value))
            self.run = None
            if ending is Ending.FINISHED or not world.starts_again(ending, why):
                break
            world.scheduler.sleep(self.rng.random() * 2)
        for executor in self.executors:
            executor.close()
        world.scheduler.sleep(10.0)  # the listener bus and the cleaner come to their end
        self.ended = True

    def _listen(self) -> None:
        """Spark's listener bus: in order, but behind what happens; events are dropped when it cannot keep up."""
        while (event := self.listener.get()) is not None:
            self.world.scheduler.sleep(self.rng.random() ** 3 * 0.5)
            if isinstance(event, TaskFailed) and self.rng.random() < self.world.profile.lost_events:
                self.world.count("listener event lost")
                continue
            self.bridge.tell(event)
