"""Drives the coordinator as executors do, with synthetic rows in real blocks."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.clock import Clock
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.coordinator.reports import Report
from spark_ckpt.format.key_groups import owned_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Section, SegmentKind, decode_block
from spark_ckpt.location.cleaner import Cleaner
from spark_ckpt.messages import (
    Ack,
    AckReply,
    BaseSnapshot,
    EndOffsets,
    EndOffsetsReply,
    Locate,
    LocateReply,
    Notification,
    Operator,
    Task,
    Trigger,
)
from spark_ckpt.storage import Storage
from tests.support.cleaner import ImmediateCleaner
from tests.support.clocks import NoClock
from tests.support.segments import encode_segment, placed, segment_ref

Rows = dict[int, dict[bytes, bytes]]
"""Rows of a store in one subtask, by key group."""

Changes = Mapping[int, Mapping[bytes, bytes | None]]


def do_now(work: Callable[[], None]) -> None:
    """Runs background work immediately."""
    work()


def make_segment(
    kind: SegmentKind, version: int, changes: Changes, path: str | None = None, first_version: int | None = None
) -> SegmentRef:
    """A segment; a delta has the changes of its version, or of all from `first_version` on."""
    if first_version is None:
        first_version = 0 if kind is SegmentKind.BASE else version
    groups = {group: [Section(tuple(entries.items()))] for group, entries in changes.items() if entries}
    made = encode_segment(kind, version, groups)
    segment = segment_ref(first_version, version, made.key_groups, made.offsets, len(made.data), data=made.data)
    return segment if path is None else placed(segment, path)


@dataclass
class Driver:
    """One run of a query with one job, driven as the JVM would drive it. Tracks the expected state of each store."""

    location: Path | str
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    query_id: str = "11111111-2222-3333-4444-555555555555"
    operators: tuple[Operator, ...] = (Operator(0, "stateStoreSave", ("default",), 4, 2),)
    settings: dict[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = (Source("source", '{"topic":{"0":5,"1":7}}'),)
    environment: Environment = field(default_factory=lambda: Environment(in_background=do_now, commit_seconds=0))
    checkpoint_format: int = 1
    stage: int = 0
    offset_log: str | None = None
    real_time_ms: int | None = None
    """Length of the batches in real-time mode, where the end offsets follow the acks."""
    log_epoch: int | None = None
    query_name: str | None = None
    report_details: bool = False
    meaning: QueryMeaning | None = None
    """Meaning of the state, in the first trigger."""
    notify: Callable[[Notification], None] = lambda notification: None
    """Receives the notifications of the first job."""

    def __post_init__(self) -> None:
        self.job: Job | None = None
        self.cleaner: Cleaner | None = None
        """Cleaner of this run's job."""
        self.key_group_factors: tuple[int, ...] = ()
        """Key-group factors announced by the coordinator."""
        self.rows: dict[SubtaskKey, Rows] = {}
        self.ids: dict[SubtaskKey, str] = {}
        self.reports: list[Report] = []
        """Reports of checkpoints so far."""

    @property
    def prefix(self) -> str:
        return "spark.sql.streaming.stateStore.ckpt."

    def make_trigger(self, version: int) -> Trigger:
        return Trigger(
            job=self.run_id,
            location=str(self.location),
            query_id=self.query_id,
            batch_id=version - 1,
            version=version,
            operators=self.operators,
            sources=() if self.real_time_ms is not None else self.sources,
            checkpoint_format=self.checkpoint_format,
            settings={self.prefix + key: value for key, value in self.settings.items()},
            spark_version="4.2.0",
            offset_log=self.offset_log if self.real_time_ms is None else None,
            real_time_ms=self.real_time_ms,
            log_epoch=self.log_epoch,
            query_name=self.query_name,
            report_details=self.report_details,
            meaning=self.meaning if self.job is None else None,
        )

    def trigger(self, version: int) -> Job:
        trigger = self.make_trigger(version)
        if self.job is None:
            environment = replace(self.environment, make_cleaner=self._make_cleaner)
            self.job = Job(trigger, environment, self.notify, self.reports.append)
        self.key_group_factors = self.job.trigger(trigger).key_group_factors
        self.stage += 1
        return self.job

    def _make_cleaner(self, storage: Storage, clock: Clock) -> Cleaner:
        self.cleaner = self.environment.make_cleaner(storage, clock)
        return self.cleaner

    def subtasks(self) -> list[SubtaskKey]:
        return [
            SubtaskKey(operator.operator_id, store, partition)
            for operator in self.operators
            for store in operator.stores
            for partition in range(operator.parallelism)
        ]

    def groups_of(self, key: SubtaskKey) -> list[int]:
        operator = next(o for o in self.operators if o.operator_id == key.operator_id)
        ranges = owned_ranges(key.partition, operator.parallelism, self.key_group_factors)
        return [group for owned in ranges for group in owned]

    def hold_deletions(self) -> list[str]:
        """Stops all deletions from now on.

        Returns:
            A list that collects the files that would have been deleted.
        """
        assert isinstance(self.cleaner, ImmediateCleaner)
        return self.cleaner.hold()

    def changes_of(self, key: SubtaskKey, version: int) -> dict[int, dict[bytes, bytes | None]]:
        groups = self.groups_of(key)
        first, second = groups[version % len(groups)], groups[(version * 7 + 1) % len(groups)]
        value = f"{key}-{version}".encode()
        changes: dict[int, dict[bytes, bytes | None]] = {first: {b"k%d" % first: value}}
        changes.setdefault(second, {})[b"s%d" % second] = None if version % 5 == 4 else value
        return changes

    def make_ack(
        self,
        key: SubtaskKey,
        version: int,
        *,
        state_id: str | None = None,
        attempt: int = 0,
        stage: int | None = None,
        stage_attempt: int = 0,
        base: BaseSnapshot | None = None,
        changes: Changes | None = None,
        delta: SegmentRef | None = None,
        base_state_id: str | None = None,
    ) -> Ack:
        rows = copy.deepcopy(self.rows.get(key, {}))
        changes = self.changes_of(key, version) if changes is None else changes
        apply(rows, changes)
        if delta is None:
            delta = make_segment(SegmentKind.DELTA, version, changes)
        return Ack(
            job=self.run_id,
            subtask=key,
            batch_id=version - 1,
            version=version,
            state_id=state_id or str(uuid.uuid4()),
            base_state_id=base_state_id if base_state_id is not None else self.ids.get(key),
            task=Task(self.stage if stage is None else stage, stage_attempt, key.partition, attempt),
            rows=sum(len(entries) for entries in rows.values()),
            delta=delta,
            base=base,
        )

    def end_offsets(self, version: int, text: str = 'v1\n{}\n{"topic":{"0":9}}') -> EndOffsetsReply:
        """Ends a batch in real-time mode with this entry of the offset log."""
        assert self.job is not None
        return self.job.end_offsets(EndOffsets(version - 1, version, text, job=self.run_id))

    def take_over(self, ack: Ack, changes: Changes | None = None) -> None:
        """Makes the state of this ack the store's expected state."""
        self.ids[ack.subtask] = ack.state_id
        rows = self.rows.setdefault(ack.subtask, {})
        apply(rows, changes if changes is not None else self.changes_of(ack.subtask, ack.version))

    def base_of(self, key: SubtaskKey, version: int) -> BaseSnapshot:
        """A base snapshot of the store's current state."""
        segment = make_segment(SegmentKind.BASE, version, self.rows.get(key, {}))
        return BaseSnapshot(segment, self.ids[key])

    def batch(self, version: int, bases: Iterable[SubtaskKey] = ()) -> list[AckReply]:
        """Runs a whole batch: the trigger, all acks, and the work that follows them."""
        job = self.trigger(version)
        bases = set(bases)
        replies, acks = [], []
        for key in self.subtasks():
            base = self.base_of(key, version - 1) if key in bases else None
            ack = self.make_ack(key, version, base=base)
            acks.append(ack)
            replies.append(job.acknowledge(ack))
        if self.real_time_ms is not None:
            self.end_offsets(version)
        for ack in acks:
            self.take_over(ack)
        job.housekeeping()
        return replies


def apply(rows: Rows, changes: Changes) -> None:
    for group, entries in changes.items():
        there = rows.setdefault(group, {})
        for row_key, value in entries.items():
            if value is None:
                there.pop(row_key, None)
            else:
                there[row_key] = value


def restore(storage: Storage, reply: LocateReply) -> Rows:
    """Rows of a store after loading the segments of a `locate` reply."""
    rows: Rows = {}
    for segment in reply.segments:
        data = bytes(segment.data if segment.path is None else storage.read(f"ckpt/{segment.path}"))
        for offset, key_group in zip(segment.offsets.tolist(), segment.key_groups.tolist(), strict=True):
            block = decode_block(data, offset, segment.path or "inline")
            assert block.key_group == key_group
            assert block.kind is (SegmentKind.BASE if segment.is_base else SegmentKind.DELTA)
            for section in block.sections:
                apply(rows, {block.key_group: dict(section.entries)})  # type: ignore[arg-type]
    return {group: entries for group, entries in rows.items() if entries}


def located(driver: Driver, version: int, key: SubtaskKey, state_id: str | None = None) -> LocateReply:
    assert driver.job is not None
    return driver.job.locate(Locate(key, version, state_id, job=driver.run_id))


def load(driver: Driver, storage: Storage, version: int) -> None:
    """Loads every store at a version from the segments that `locate` names."""
    for key in driver.subtasks():
        reply = located(driver, version, key)
        driver.ids[key], driver.rows[key] = str(reply.state_id), restore(storage, reply)


def check_rows(driver: Driver, storage: Storage, version: int) -> None:
    """Asserts that every store has its expected rows at the newest version."""
    for key in driver.subtasks():
        expected = {group: entries for group, entries in driver.rows[key].items() if entries}
        assert restore(storage, located(driver, version, key)) == expected, key


def faulty_environment(storage: Storage) -> Environment:
    """Environment for jobs on this storage; deletes immediately and never sleeps."""
    return Environment(
        clock=NoClock(),
        open_storage=lambda trigger: storage,
        make_cleaner=ImmediateCleaner,
        in_background=do_now,
        commit_seconds=0,
    )
