"""Executors and their state stores: the JVM provider's handling of versions, without its tables."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from spark_ckpt.compaction.merges import digest_of
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Block, SegmentKind
from spark_ckpt.messages import (
    Ack,
    BaseSnapshot,
    Decline,
    Event,
    InProgress,
    Locate,
    LocateReply,
    MergedDeltas,
    Notification,
    Outcome,
    Task,
    Trigger,
    Unreadable,
)
from tests.simulation.decoder_cache import read_block
from tests.simulation.group_commit import GroupCommit
from tests.simulation.model import Changes, Rows, applied
from tests.simulation.scheduler import Group
from tests.support.driver import make_segment
from tests.support.segments import placed

if TYPE_CHECKING:
    from tests.simulation.spark import Driver
    from tests.simulation.world import World


class Denied(Exception):  # noqa: N818
    """Spark's CommitDeniedException: does not count as a failure of the task."""


class TaskError(Exception):
    """A task attempt fails."""


def _block(data: bytes, offset: int, where: str) -> Block:
    try:
        return read_block(data, offset, where)
    except SparkCkptError as e:
        raise TaskError(str(e)) from e


@dataclass(slots=True)
class Committed:
    """A version accepted by the coordinator, but not yet folded into the table."""

    state_id: str
    changes: Changes


@dataclass(eq=False, slots=True)
class Step:
    """A base or a merge: being written, or `made` and waiting for an ack.

    Args:
        span: versions whose changes it has.
        write: writes it; a failure leaves no file.
        left: acks of the store until the writing ends; 0 if it takes a time instead.
    """

    span: InProgress
    write: Callable[[], BaseSnapshot | MergedDeltas]
    left: int = 0
    made: BaseSnapshot | MergedDeltas | None = None
    made_at: float = inf


class Store:
    """A subtask's state store in one executor."""

    def __init__(self, executor: Executor, key: SubtaskKey) -> None:
        self._executor, self._key = executor, key
        self._query = executor.world.query
        self._version = -1
        self._id: str | None = None
        self._rows: Rows = {}
        self._committed: Committed | None = None
        self._aside: Committed | None = None
        self._is_open = False
        self._steps: list[Step] = []
        """Bases and merges that are being written or wait for an ack, oldest first."""
        self._must_bring_base = False
        self._is_lost = False
        """True if the local disk has lost the rows of the version."""
        self._cold: LocateReply | None = None
        """Location of the rows of the version, if some of them are still in its segments only."""

    def open(self, trigger: Trigger, wanted: str | None, offset: int) -> Rows:
        """Rows at the version from which a batch starts, at this offset of the input; `wanted` is the state id named by
        Spark's commit log."""
        version = trigger.version - 1
        driver, world = self._executor.driver, self._executor.world
        self._query = world.query.at(trigger.operators[0].parallelism)
        if self._executor.disk_fails("between batches"):
            self._lose()
        if self._version != version and self._held(version) is not None:
            self._load_rest()
        located = driver.bridge.locate(
            trigger, Locate(self._key, version, wanted, job=trigger.job), self._held(version)
        )
        if located is not None and not (version > 0 and located.state_id == self._held(version)):
            try:
                self._load(version, located, offset)
            except TaskError as e:
                driver.bridge.unreadable(Unreadable(self._key, version, str(e), job=trigger.job))
                raise
        if self._version != version:
            self._take_back()
            self._fold()
        self._is_open = True
        if self._committed is not None:
            self._aside, self._committed = self._committed, None
        if located is not None:
            self._obey(located.compaction.is_full, located.compaction.required, located.compaction.inputs)
        world.checks.opened(self._query, self._key, version, self._rows, offset)
        if self._executor.disk_fails("in a batch"):
            self._lose()
            self._take_back()
            self._is_open = False
            raise TaskError("the local disk has lost a row")
        return self._rows

    def look_up(self, trigger: Trigger, changes: Changes) -> None:
        """Looks up the rows that a batch changes, and loads the rest once that has cost the budget of the plan."""
        if self._cold is None or not changes:
            return
        plan = self._cold.restore
        rows = sum(map(len, changes.values()))
        if plan.budget and rows * plan.row_cost + len(changes) * plan.key_group_cost <= plan.budget:
            return
        self._executor.world.count("loaded the rest in a batch")
        if error := self._load_rest():
            self._take_back()
            self._is_open = False
            version = trigger.version - 1
            self._executor.driver.bridge.unreadable(Unreadable(self._key, version, str(error), job=trigger.job))
            raise error

    def commit(self, trigger: Trigger, task: Task, changes: Changes) -> str:
        """Acknowledges the next version.

        Returns:
            The state id that counts.
        """
        world, rng = self._executor.world, self._executor.rng
        driver = self._executor.driver
        base = None
        try:
            if self._aside is None:
                if self._must_bring_base and not any(isinstance(step.made, BaseSnapshot) for step in self._steps):
                    self._write_base_now()
                self._progress()
                base = self._take()
            state_id = str(uuid.UUID(world.new_id()))
            delta = self._executor.ship_delta(trigger, task, changes)
            ack = Ack(
                job=trigger.job,
                subtask=self._key,
                batch_id=trigger.batch_id,
                version=trigger.version,
                state_id=state_id,
                task=task,
                rows=sum(len(entries) for entries in applied(self._rows, changes).values()),
                delta=delta,
                base_state_id=self._id,
                base=base if isinstance(base, BaseSnapshot) else None,
                merged=base if isinstance(base, MergedDeltas) else None,
                in_progress=tuple(step.span for step in self._steps),
            )
            if ack.merged is not None:
                world.count("merged deltas in an ack")
            if len(self._steps) + (base is not None) > 1:
                world.count("several bases and merges in progress")
            world.checks.sent(ack)
            world.scheduler.sleep(rng.random() ** 3 * 0.5)
            reply = driver.bridge.acknowledge(trigger, ack)
            world.scheduler.sleep(rng.random() ** 3 * 0.5)
        except BaseException as e:
            self._take_back()
            if isinstance(e, TaskError):
                driver.bridge.tell(Decline(self._key, trigger.batch_id, trigger.version, task, str(e), job=trigger.job))
            raise
        finally:
            self._is_open = False
        world.count(f"ack: {reply.outcome.value}")
        if reply.outcome is Outcome.SUCCESS or reply.state_id == state_id:
            self._committed, self._aside = Committed(state_id, changes), None
        else:
            self._take_back()
        if reply.outcome is Outcome.SUCCESS:
            self._obey(reply.compaction.is_full, reply.compaction.required, reply.compaction.inputs)
        if reply.outcome is Outcome.DENIED:
            raise Denied
        if reply.outcome not in (Outcome.SUCCESS, Outcome.DUPLICATE):
            raise TaskError(f"the checkpoint was given up ({reply.outcome.value})")
        assert reply.state_id is not None
        return reply.state_id

    def notified(self, notification: Notification) -> None:
        """Frees memory no longer needed, but none in use by a batch."""
        event, version = notification.event, notification.version
        if version is None:
            return
        if event is Event.COMPLETE and self._version < version - 1 and not self._is_open:
            self._version, self._id, self._rows, self._cold = -1, None, {}, None
            self._committed = self._aside = None
            self.forget_base()
        elif event is Event.COMPLETE and self._version == version - 1 and self._committed is not None:
            if self._cold is not None:
                delay = self._cold.restore.rest_after_ms / 1000
                scheduler, group = self._executor.world.scheduler, self._executor.group
                scheduler.spawn("later load", group, partial(self._load_later, self._cold), delay)
                return
            with suppress(TaskError):
                self._fold()
        elif event is Event.ABORTED and self._version == version - 1:
            self._committed = self._aside = None

    def oldest(self) -> float:
        """Creation time of the oldest unsent base or merge; infinite without one."""
        return min((step.made_at for step in self._steps if step.made is not None), default=inf)

    def _fold(self) -> None:
        """Folds the committed changes into the table, which moves rows to the local disk. A failure leaves no state."""
        assert self._committed is not None
        if self._executor.disk_fails("in a fold"):
            self._version, self._id, self._rows, self._committed = -1, None, {}, None
            raise TaskError("the local disk is full")
        self._rows = applied(self._rows, self._committed.changes)
        self._version, self._id, self._committed = self._version + 1, self._committed.state_id, None

    def _lose(self) -> None:
        """The local disk loses the rows."""
        self._is_lost, self._rows, self._cold = True, {}, None

    def _held(self, version: int) -> str | None:
        if self._is_lost:
            return None
        if version == self._version:
            return self._id
        if version == self._version + 1:
            held = self._committed or self._aside
            return held.state_id if held else None
        return None

    def _take_back(self) -> None:
        if self._committed is None and self._aside is not None:
            self._committed = self._aside
        self._aside = None

    def _load(self, version: int, located: LocateReply, offset: int) -> None:
        """Loads a version by the plan of its location."""
        cold = located if located.restore.mode == "by_row" else None
        # What lookups find, if the segments are right: `_load_rest` compares.
        rows = self._query.answer(offset, self._key) if cold else self._read(located)
        self._rows, self._version, self._id, self._is_lost = rows, version, located.state_id, False
        self._cold = cold
        self._committed = self._aside = None
        self.forget_base()

    def _load_rest(self) -> TaskError | None:
        """Loads what is in segments only. After an error, the rows are lost."""
        cold = self._cold
        if cold is None:
            return None
        try:
            rows = self._read(cold)
        except TaskError as e:
            if self._cold is cold:
                self._lose()
            return e
        if self._cold is cold:
            self._cold = None
            self._executor.world.checks.loaded(self._key, self._version, rows, self._rows)
        return None

    def _load_later(self, cold: LocateReply) -> None:
        """Loads the rest in the background, unless that is done or the store has other state."""
        if self._cold is cold:
            self._executor.world.count("loaded the rest in the background")
            self._load_rest()

    def _read(self, located: LocateReply) -> Rows:
        rows: Rows = {}
        for segment in located.segments:
            data = bytes(segment.data) if segment.path is None else self._executor.read(segment.path)
            for offset in segment.offsets.tolist():
                block = _block(data, offset, segment.path or "inline")
                for section in block.sections:
                    entries = {key: value for key, value in section.entries if not isinstance(value, tuple)}
                    rows = applied(rows, {block.key_group: entries})
        return rows

    def _obey(self, due: bool, required: bool, merge: tuple[SegmentRef, ...]) -> None:
        """Follows the coordinator's demand for a base of the version in the table, or for merged deltas."""
        self._must_bring_base = required
        if self._version <= 0:
            return
        if due:
            if not any(step.span.is_base for step in self._steps):
                self._make_base()
        elif merge and all(step.span.version < merge[0].first_version for step in self._steps):
            self._merge(merge)

    def _take(self) -> BaseSnapshot | MergedDeltas | None:
        """A base or a merge for the next ack; a base first."""
        made = sorted((step for step in self._steps if step.made is not None), key=lambda step: not step.span.is_base)
        if not made:
            return None
        self._steps.remove(made[0])
        return made[0].made

    def _write_base_now(self) -> None:
        """Writes a base at once, or ends the one that is being written: the chain is at its bound, so an ack without a
        base is not possible."""
        if self._executor.disk_fails("in a base"):
            self._lose()
            raise TaskError("the local disk has lost a page")
        if error := self._load_rest():
            raise error
        step = next((step for step in self._steps if step.span.is_base and step.left), None)
        if step is not None:
            self._executor.world.count("waited for a slow base")
            step.left = 0
            self._end(step)
            return
        version, write = self._version, self._base_of_table()
        self.forget_base()
        base = write()
        if self._version == version:
            self._steps.append(Step(InProgress(0, version), write, 0, base, self._executor.world.scheduler.now))

    def _base_of_table(self) -> Callable[[], BaseSnapshot]:
        version, state_id, rows = self._version, self._id, self._rows
        assert state_id is not None
        return lambda: BaseSnapshot(self._executor.ship_base(version, rows), state_id)

    def _make_base(self) -> None:
        """Writes a base in the background, in place of all merges; the next ack after that carries it."""
        write, span = self._base_of_table(), InProgress(0, self._version)

        def made() -> BaseSnapshot:
            if self._executor.disk_fails("in a base"):
                raise TaskError("the disk has no space to sort a base")
            if error := self._load_rest():
                raise error
            return write()

        self.forget_base()
        self._in_background(span, made)

    def _merge(self, deltas: tuple[SegmentRef, ...]) -> None:
        """Merges deltas in the background; the next ack after that carries the outcome."""

        def merged() -> MergedDeltas:
            changes: Changes = {}
            for delta in deltas:
                data = bytes(delta.data) if delta.path is None else self._executor.read(delta.path)
                for offset in delta.offsets.tolist():
                    block = _block(data, offset, delta.path or "inline")
                    for section in block.sections:
                        entries = {key: value for key, value in section.entries if not isinstance(value, tuple)}
                        changes.setdefault(block.key_group, {}).update(entries)
            segment = self._executor.ship_merged(deltas[0].first_version, deltas[-1].version, changes)
            return MergedDeltas(segment, digest_of(deltas))

        self._in_background(InProgress(deltas[0].first_version, deltas[-1].version), merged)

    def _in_background(self, span: InProgress, made: Callable[[], BaseSnapshot | MergedDeltas]) -> None:
        world, rng = self._executor.world, self._executor.rng
        step = Step(span, made)
        self._steps.append(step)
        if world.profile.slow:
            step.left = round(world.profile.slow ** rng.random())
            world.count(f"took {10 ** (len(str(step.left)) - 1)} batches or more")
            return
        # A base takes longer, so merges end before it and after it.
        world.scheduler.spawn(
            "base", self._executor.group, partial(self._end, step), rng.random() * (10 if span.is_base else 3)
        )

    def _progress(self) -> None:
        """Ends the slow bases and merges whose time has come."""
        for step in list(self._steps):
            if step.left:
                step.left -= 1
                if not step.left:
                    self._end(step)

    def _end(self, step: Step) -> None:
        try:
            base = step.write()
        except TaskError:
            base = None  # the deltas stay, and the coordinator will ask again
        if step not in self._steps:
            self._delete(base)
        elif base is None:
            self._steps.remove(step)
        else:
            step.made, step.made_at = base, self._executor.world.scheduler.now

    def forget_base(self) -> None:
        """Deletes bases and merges that were not announced yet."""
        for step in self._steps:
            self._delete(step.made)
        self._steps = []

    def _delete(self, base: BaseSnapshot | MergedDeltas | None) -> None:
        if base is not None and base.segment.path is not None:
            self._executor.world.disk.delete(f"ckpt/{base.segment.path}")


class Executor:
    """An executor of one driver."""

    def __init__(self, world: World, driver: Driver, name: str, rng: random.Random) -> None:
        self.world, self.driver, self.rng = world, driver, rng
        self.group = Group(name, driver.group)
        self._stores: dict[tuple[str, SubtaskKey], Store] = {}
        self._group_commit = GroupCommit(self, self._write)

    def store(self, run_id: str, key: SubtaskKey) -> Store:
        return self._stores.setdefault((run_id, key), Store(self, key))

    def notified(self, notification: Notification) -> None:
        """Passes the notification on to the stores of the job."""
        for (run_id, _), store in self._stores.items():
            if run_id == notification.job:
                store.notified(notification)

    def ended(self, run_id: str) -> None:
        """Unloads the stores of a run that has ended."""
        for key in [key for key in self._stores if key[0] == run_id]:
            self._stores.pop(key).forget_base()

    def oldest(self) -> float:
        """Creation time of the oldest file that no ack has named yet."""
        return min((store.oldest() for store in self._stores.values()), default=inf)

    def close(self) -> None:
        """Unloads all stores."""
        for store in self._stores.values():
            store.forget_base()

    def ship_delta(self, trigger: Trigger, task: Task, changes: Changes) -> SegmentRef:
        """A delta inside the ack, or in a file if it is large, which may also hold deltas of other tasks."""
        segment = make_segment(SegmentKind.DELTA, trigger.version, changes)
        if not self._is_large(segment):
            return segment
        stage = trigger.job, task.stage_id, task.stage_attempt
        return self._group_commit.ship(stage, segment) or self._in_file("delta", segment)

    def ship_base(self, version: int, rows: Rows) -> SegmentRef:
        """A base inside an ack, or in a file of its own if it is large."""
        segment = make_segment(SegmentKind.BASE, version, rows)
        return self._in_file("base", segment) if self._is_large(segment) else segment

    def ship_merged(self, first_version: int, version: int, changes: Changes) -> SegmentRef:
        """A merged delta inside an ack, or in a file of its own if it is large."""
        segment = make_segment(SegmentKind.DELTA, version, changes, first_version=first_version)
        return self._in_file("deltas", segment) if self._is_large(segment) else segment

    def disk_fails(self, when: str) -> bool:
        """True if the local disk fails now."""
        rate = self.world.profile.local_disk
        fails = rate > 0 and self.rng.random() < rate  # no draw without, so that each seed keeps its schedule
        if fails:
            self.world.count(f"local disk fails {when}")
        return fails

    def _is_large(self, segment: SegmentRef) -> bool:
        return segment.size > 0 and self.rng.random() < self.world.profile.large

    def _in_file(self, kind: str, segment: SegmentRef) -> SegmentRef:
        return placed(segment, self._write(kind, bytes(segment.data)))

    def _write(self, kind: str, data: bytes) -> str:
        path = f"shared/{kind}-{self.world.new_id()}"
        self.world.scheduler.sleep(self.rng.random() ** 2 * 0.3)
        if self.rng.random() < self.world.faults.error:
            self.world.count("executor write: error")
            raise TaskError("a state file cannot be written")
        self.world.disk.write(f"ckpt/{path}", data)
        return path

    def read(self, path: str) -> bytes:
        """Content of a state file named by `locate`: the file must exist."""
        self.world.scheduler.sleep(self.rng.random() ** 2 * 0.3)
        data = self.world.disk.read(f"ckpt/{path}")
        if data is None:
            raise TaskError(f"the state file {path} is missing")
        return data
