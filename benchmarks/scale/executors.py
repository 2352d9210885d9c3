"""Synthetic executors: triggers and acknowledgements of a join with four stores in each partition."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.format.key_groups import owned_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.messages import Ack, BaseSnapshot, Operator, Task, Trigger
from tests.bridge import wire
from tests.support.segments import encode_segment, segment_ref

STORES = ("keyToNumValues.left", "keyWithIndexToValue.left", "keyToNumValues.right", "keyWithIndexToValue.right")
"""One per state store of a join partition."""

_GROUPS_CHANGED = 3


@dataclass
class Executors:
    """Generates the acknowledgements of a batch: a small delta per subtask, and the requested base snapshots.

    Args:
        location: checkpoint location.
        partitions: number of subtasks.
        executors: number of executors that share them.
        job: the job that all messages are about.
        ids: state id of each subtask's last acknowledgement.
        due: subtasks that were asked for a base.
    """

    location: str
    partitions: int
    executors: int = 1
    job: str = "run"
    ids: dict[SubtaskKey, str] = field(default_factory=dict)
    due: set[SubtaskKey] = field(default_factory=set)

    def trigger(self, version: int, job: str | None = None) -> wire.Request:
        """Message that begins a batch; of another job, if one is given."""
        trigger = Trigger(
            location=self.location,
            query_id="query",
            batch_id=version - 1,
            version=version,
            operators=(Operator(0, "symmetricHashJoin", STORES, self.partitions),),
            sources=(Source("source", '{"topic":{"0":5}}'),),
            spark_version="4.2.0",
            job=job or self.job,
        )
        return wire.trigger(trigger)

    @property
    def subtasks(self) -> Iterator[SubtaskKey]:
        """All stores of all partitions, store by store."""
        for store in STORES:
            for partition in range(self.partitions):
                yield SubtaskKey(0, store, partition)

    def acknowledgements(self, version: int, factors: tuple[int, ...]) -> Iterator[wire.Request]:
        """One acknowledgement per subtask, store by store.

        Args:
            version: version of the state after the batch.
            factors: numbering of the key groups, from the reply to the trigger.
        """
        for subtask in self.subtasks:
            yield self._acknowledgement(subtask, version, factors)

    def _acknowledgement(self, subtask: SubtaskKey, version: int, factors: tuple[int, ...]) -> wire.Request:
        ranges = owned_ranges(subtask.partition, self.partitions, factors)
        groups = [group for one in ranges for group in one][:_GROUPS_CHANGED]
        base = None
        if subtask in self.due:
            base = BaseSnapshot(_segment(SegmentKind.BASE, version - 1, groups), self.ids[subtask])
        executor = str(subtask.partition % self.executors)
        ack = Ack(
            subtask,
            version - 1,
            version,
            str(uuid.uuid4()),
            Task(version, 0, subtask.partition, 0, executor=executor),
            version,
            _segment(SegmentKind.DELTA, version, groups),
            self.ids.get(subtask),
            base,
            rows_updated=1,
            timings_us={"snapshot": 12, "write": 40},
            job=self.job,
        )
        self.ids[subtask] = ack.state_id
        return wire.ack(ack)


def _segment(kind: SegmentKind, version: int, groups: Sequence[int]) -> SegmentRef:
    first_version = 0 if kind is SegmentKind.BASE else version
    return replace(_rows(kind, tuple(groups)), first_version=first_version, version=version)


# The coordinator does not look into segments, so those of all versions can have the bytes of the first.
@lru_cache(maxsize=1 << 17)
def _rows(kind: SegmentKind, groups: tuple[int, ...]) -> SegmentRef:
    sections = {group: [Section(((b"key%d" % group, b"v" * 60),))] for group in groups}
    made = encode_segment(kind, 1, sections)
    return segment_ref(0, 1, made.key_groups, made.offsets, len(made.data), data=made.data)
