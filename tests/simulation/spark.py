"""Spark's driver: the micro-batch loop, its own logs, and its rules for stages and task attempts."""

from __future__ import annotations

import json
import random
from collections import deque
from enum import Enum
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.completed import JobStatus
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import Close, EndOffsets, Notification, Rescale, TaskFailed, Trigger
from spark_ckpt.rescaling.errors import RescaleRefusedError
from tests.simulation.bridge import Bridge, BridgeError
from tests.simulation.clocks import MachineClock
from tests.simulation.executor import Executor
from tests.simulation.offsets import entry, number_in, offset_in, source_offset
from tests.simulation.rollbacks import UNFINISHED, FencedLogs, content_of, roll_back
from tests.simulation.scheduler import Group, Mailbox, Promise
from tests.simulation.stages import BatchFailed, TaskSet

if TYPE_CHECKING:
    from tests.simulation.world import World

REAL_TIME_MS = 5000
"""Length of a batch in real-time mode."""

PREFIX = "spark.sql.streaming.stateStore.ckpt."


class Ending(Enum):
    """Outcome of a run of the query."""

    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "cancelled"


class Run:
    """One run of the query: from the batch found in Spark's logs to the last batch, or to an error."""

    def __init__(self, driver: Driver, number: int) -> None:
        self.driver, self.world = driver, driver.world
        self.run_id = f"{driver.group.name}-run{number}"
        self.group = Group(self.run_id, driver.group)
        self.ended: Promise[tuple[Ending, str]] = Promise(driver.world.scheduler)
        self.is_through = False
        self.is_real_time = driver.world.profile.real_time > 0 and driver.rng.random() < driver.world.profile.real_time
        self.query = driver.world.query
        """The query with its number of partitions in this run."""
        self.read = (0, 0)
        """Offsets of the input from which and up to which the current batch reads."""
        self._ids: dict[str, str] = {}
        self._logs: FencedLogs | None = None
        """Spark's logs in a world with rollbacks."""
        self._after: str | None = None
        """Id of the offsets of the last committed batch."""
        self._begun: str | None = None
        """Entry of the offset log of the batch that runs."""

    def go(self) -> None:
        """Runs batches; writes offsets and commits in the order of Spark's `MicroBatchExecution`."""
        try:
            if self.world.rolls_back:
                self._logs = FencedLogs(self.world, self.group)
            first = batch = self._first_batch() if self._logs is None else self._planned_batch(self._logs)
            while batch < self.world.batches:
                self._batch(batch, is_first=batch == first)
                batch += 1
                if self.driver.rng.random() < self.world.profile.one_batch:
                    self.world.count("run of few batches")
                    break
        except BatchFailed as e:
            self.ended.set((Ending.FAILED, str(e)))
        else:
            self.is_through = batch >= self.world.batches
            self.ended.set((Ending.FINISHED, ""))

    def wanted(self, key: SubtaskKey) -> str | None:
        """State id requested by Spark: with checkpoint format 2, the one in its commit log."""
        return self._ids.get(str(tuple(key))) if self.world.profile.checkpoint_format == 2 else None

    def _first_batch(self) -> int:
        done = [int(file.name) for file in self.world.disk.list("commits") if not file.is_directory]
        last = max(done, default=-1)
        if last >= 0:
            self._ids = json.loads(self.world.disk.read(f"commits/{last}") or b"{}")
            content = self.world.disk.read(f"offsets/{last}")
            assert content is not None
            self.read = (0, offset_in(content))
            self._take_number(last)
        if self.is_real_time:
            self._purge_after(last)
        return last + 1

    def _take_number(self, last: int) -> None:
        """Takes the number of partitions from the newest entry."""
        if not self.world.profile.rescale:
            return
        newest = self.world.disk.read(f"offsets/{last + 1}") or self.world.disk.read(f"offsets/{last}")
        assert newest is not None
        self.query = self.world.query.at(number_in(newest))

    def _rescale(self, batch: int) -> None:
        """Asks for another number of partitions, before the entry of a batch in the offset log (Scala:
        `RunningRescale`)."""
        world, rng = self.world, self.driver.rng
        if batch == 0 or rng.random() >= world.profile.rescale or world.disk.read(f"offsets/{batch}") is not None:
            return
        number = rng.choice(
            [n for n in range(1, world.query.max_parallelism + 1) if not world.query.max_parallelism % n]
        )
        try:
            self.driver.bridge.rescale(Rescale(batch, number, job=self.run_id))
        except RescaleRefusedError as e:
            world.count(f"rescale refused: {e.reason[:20]}")
            return
        except (SparkCkptError, BridgeError) as e:
            world.count(f"batch failed: {type(e).__name__}")
            raise BatchFailed(f"{type(e).__name__}: {e}") from e
        world.count("rescale of a running query")
        world.trace(f"{self.run_id}: {number} partitions from batch {batch} on")
        self.query = world.query.at(number)

    def _purge_after(self, last: int) -> None:
        """Deletes the offsets of batches without a commit (`OffsetSeqLog.purgeAfter`)."""
        for file in self.world.disk.list("offsets"):
            if int(file.name) > last:
                self.world.count("offsets purged")
                self.world.disk.delete(f"offsets/{file.name}")

    def _planned_batch(self, logs: FencedLogs) -> int:
        """The first batch, by Spark's rules (`MicroBatchExecution.populateStartOffsets`)."""
        batches = logs.batches()
        if not batches.started:
            return 0
        last = batches.started[-1]
        offsets = logs.read("offsets", last)
        before = offset_in(logs.read("offsets", last - 1)) if last else 0
        self.read = (before, offset_in(offsets))
        if batches.last_committed == last:
            self._after = content_of(offsets)["id"]
            return last + 1
        self._begun = offsets.decode()
        return last

    def _planned_end(self, batch: int, logs: FencedLogs) -> int:
        """End offset of a batch, from the logs at the start of the run, or written now. It continues the batch before,
        as this run knows it."""
        if self._begun is not None:
            return self.read[1]
        end = self.read[1] + 1
        self._begun = entry(end, {"id": self.world.new_id(), "after": self._after})
        logs.put("offsets", batch, self._begun)
        return end

    def _commit(self, batch: int, content: dict[str, str]) -> None:
        if self._logs is not None:
            assert self._begun is not None
            begun = content_of(self._begun.encode())["id"]
            self._logs.put("commits", batch, "\n".join(("v1", json.dumps({"of": begun}))))
            self._after, self._begun = begun, None
        elif not self.world.disk.create(f"commits/{batch}", json.dumps(content).encode()):
            raise BatchFailed(f"commits/{batch} exists: another run has committed it")

    def _batch(self, batch: int, is_first: bool) -> None:
        world, rng = self.world, self.driver.rng
        world.scheduler.sleep(rng.random() * 0.1)
        if world.checks.is_discarded:
            raise BatchFailed("the query is over for good")
        while (quiet := world.quiet_until - world.scheduler.now) > 0:
            world.scheduler.sleep(quiet + rng.random())
        if world.profile.rescale and not is_first:
            self._rescale(batch)
            world.scheduler.sleep(rng.random() ** 3)
        if self._logs is None:
            self.read = (self.read[1], self._end(batch, is_first))
        else:
            start = self.read[self._begun is None]
            self.read = (start, self._planned_end(batch, self._logs))
            self._logs.start_again()
        trigger = self._trigger(batch)
        world.trace(f"{self.run_id}: batch {batch} begins")
        self.driver.began.append(world.scheduler.now)
        uses = 2 if not self.is_real_time and rng.random() < world.profile.twice else 1
        ids: dict[SubtaskKey, str] = {}
        for _ in range(uses):
            stages = []
            for number, operators in enumerate(self.query.stages):
                stage = TaskSet(self, trigger, operators, is_map=number + 1 < len(self.query.stages))
                stages.append(stage)
                stage.go(list(range(operators[0].parallelism)))
                if number and not self.is_real_time and rng.random() < world.profile.fetch_failure:
                    again = stages[number - 1]
                    lost = [p for p in sorted(again.done) if rng.random() < 0.5]
                    if lost:
                        again.rerun(lost)
            for stage in stages:
                for key, state_id in stage.ids.items():
                    ids.setdefault(key, state_id)
        world.scheduler.sleep(rng.random() ** 2)
        if self.is_real_time:
            self._write_end_offsets(trigger)
        content = {str(tuple(key)): state_id for key, state_id in ids.items()}
        world.checks.before_commit(self.query, self.run_id, batch, ids)
        if self.is_real_time and world.disk.read(f"offsets/{batch}") != entry(self.read[1]).encode():
            raise BatchFailed(f"offsets/{batch} is gone or has changed: another run has begun in real-time mode")
        world.checks.committing = self.run_id
        self._commit(batch, content)
        world.checks.committed_by = self.run_id
        world.trace(f"{self.run_id}: batch {batch} is committed")
        self._ids = content

    def _end(self, batch: int, is_first: bool) -> int:
        """Offset up to which a batch reads. In real-time mode Spark's log does not know it yet."""
        world = self.world
        width = self.driver.rng.randrange(4) if world.profile.real_time else 1
        end = self.read[1] + width
        if self.is_real_time or world.disk.create(f"offsets/{batch}", self._entry(end).encode()):
            return end
        if world.profile.rescale and not is_first:
            raise BatchFailed(f"offsets/{batch} exists: another run has begun it")
        if world.profile.real_time and not is_first:
            raise BatchFailed(f"offsets/{batch} exists: another run has begun it")
        content = world.disk.read(f"offsets/{batch}")
        if content is None:
            raise BatchFailed(f"offsets/{batch} is gone: another run has begun in real-time mode")
        return offset_in(content)

    def _entry(self, end: int) -> str:
        return entry(end, partitions=self.query.parallelism if self.world.profile.rescale else None)

    def _write_end_offsets(self, trigger: Trigger) -> None:
        """Ends a batch in real-time mode as `MicroBatchExecution.markMicroBatchEnd` and our file manager do."""
        world, name, content = self.world, f"offsets/{trigger.batch_id}", entry(self.read[1])
        if world.disk.read(name) is not None:
            raise BatchFailed(f"{name} exists: another run has completed the batch")
        request = EndOffsets(trigger.batch_id, trigger.version, content, job=self.run_id)
        try:
            self.driver.bridge.end_offsets(request)
        except (SparkCkptError, BridgeError) as e:
            world.count(f"batch failed: {type(e).__name__}")
            raise BatchFailed(f"{type(e).__name__}: {e}") from e
        world.count("batch in real-time mode")
        world.scheduler.sleep(self.driver.rng.random() ** 3)
        if not world.disk.create(name, content.encode()):
            raise BatchFailed(f"{name} exists: another run has completed the batch")
        world.scheduler.sleep(self.driver.rng.random() ** 3)

    def _trigger(self, batch: int) -> Trigger:
        profile = self.world.profile
        return Trigger(
            job=self.run_id,
            location="sim://location",
            query_id=self.world.query_id,
            batch_id=batch,
            version=batch + 1,
            operators=self.query.operators,
            sources=() if self.is_real_time else (Source("source", source_offset(self.read[1])),),
            checkpoint_format=profile.checkpoint_format,
            settings={
                PREFIX + "maxParallelism": str(self.world.query.max_parallelism),
                **{PREFIX + key: value for key, value in profile.all_settings().items()},
            },
            spark_version="4.2.0",
            offset_log=None if self.is_real_time else self._begun or self._entry(self.read[1]),
            real_time_ms=REAL_TIME_MS if self.is_real_time else None,
            log_epoch=None if self._logs is None else self._logs.epoch,
        )


class Driver:
    """A driver JVM with its executors; runs the query again until it completes or its user gives up."""

    def __init__(self, world: World, name: str, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.group = Group(name)
        self.clock = MachineClock(world.scheduler)
        self.bridge = Bridge(world, self.group, rng, self.clock, self._notify)
        self.began: deque[float] = deque(maxlen=2)
        """Start times of the current batch and of the previous one."""
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
        """Executor for an attempt: that of the store, or another one; never one with another attempt of the task."""
        free = [executor for executor in self.executors if executor not in busy]
        if not free:
            return self._new_executor()
        return free[partition % len(free)] if self.rng.random() < 0.8 else self.rng.choice(free)

    def lose_executor(self) -> None:
        """Kills an executor; the cluster supplies a new one."""
        if not self.executors:
            return
        executor = self.rng.choice(self.executors)
        self.executors.remove(executor)
        self.world.scheduler.kill(executor.group)
        self._new_executor()
        for stage in list(self.stages):
            stage.lost(executor)

    def stop_run(self) -> None:
        """Stops the query wherever it is; its running tasks are interrupted a little later."""
        run = self.run
        if run is not None:
            self.stages.clear()
            self.world.scheduler.kill(run.group)
            run.ended.set((Ending.STOPPED, "stopped"))

    def oldest(self) -> float:
        """Earliest write time of a file that no checkpoint names yet, but that one of this driver may still name."""
        return min([*self.began, *(executor.oldest() for executor in self.executors)], default=inf)

    def _ended(self, run_id: str) -> None:
        """Tells executors that a run has ended, or ends them with it."""
        for executor in list(self.executors):
            if self.rng.random() < 0.3:
                self.executors.remove(executor)
                executor.close()
                self.world.scheduler.kill(executor.group)
                self._new_executor()
            else:
                executor.ended(run_id)

    def _notify(self, notification: Notification) -> None:
        """Notifies executors: late, more than once or never."""
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
            if "StateIdMismatchError" in why:
                world.go_back()
            if why == UNFINISHED and (world.is_calm or self.rng.random() < 0.5):
                roll_back(world)
            self.listener.put(Close(JobStatus(ending.value), job=run.run_id))
            self.run = None
            if ending is Ending.FINISHED:
                if run.is_through or self.rng.random() < 0.1:
                    break
                self._ended(run.run_id)
            elif not world.starts_again(ending, why):
                break
            world.scheduler.sleep(self.rng.random() * 2)
        for executor in self.executors:
            executor.close()
        world.scheduler.sleep(10.0)  # time for the listener bus and the cleaner to finish
        self.ended = True

    def _listen(self) -> None:
        """Spark's listener bus: delivers events in order and with a delay; drops some when it cannot keep up."""
        while (event := self.listener.get()) is not None:
            self.world.scheduler.sleep(self.rng.random() ** 3 * 0.5)
            if isinstance(event, TaskFailed) and self.rng.random() < self.world.profile.lost_events:
                self.world.count("listener event lost")
                continue
            if isinstance(event, Close):
                self.world.checks.closing(event.job, event.status.value)
            self.bridge.tell(event)
