"""Cost of the coordinator: CPU time per batch with many subtasks, without Spark and without a JVM.

python -m benchmarks.stores.coordinator ORDER RESULT, where ORDER is the JSON of an `Order` whose location is a folder.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.stores.job import Order
from spark_ckpt.bridge import codec, protocol
from spark_ckpt.bridge.__main__ import collect_seldom
from spark_ckpt.bridge.protocol import Message
from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.format.key_groups import owned_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.messages import Ack, BaseSnapshot, Operator, Task, Trigger, TriggerReply
from spark_ckpt.storage import LocalStorage
from tests.bridge import wire
from tests.support.segments import encode_segment, segment_ref

STORES = ("keyToNumValues.left", "keyWithIndexToValue.left", "keyToNumValues.right", "keyWithIndexToValue.right")
"""One per state store of a join partition."""

WARMUPS = 5
_GROUPS_CHANGED = 3


@dataclass
class Executors:
    """Generates the acknowledgements of a batch: a small delta per subtask, and the requested base snapshots."""

    location: str
    partitions: int
    ids: dict[SubtaskKey, str] = field(default_factory=dict)
    due: set[SubtaskKey] = field(default_factory=set)

    def trigger(self, version: int) -> Message:
        """Message that begins a batch."""
        trigger = Trigger(
            location=self.location,
            query_id="query",
            batch_id=version - 1,
            version=version,
            operators=(Operator(0, "symmetricHashJoin", STORES, self.partitions),),
            sources=(Source("source", '{"topic":{"0":5}}'),),
            spark_version="4.2.0",
            job="run",
        )
        return wire.message_of(wire.trigger(trigger))

    def acknowledgements(self, version: int, reply: TriggerReply) -> Iterator[Message]:
        """One acknowledgement per subtask, store by store."""
        for store in STORES:
            for partition in range(self.partitions):
                ranges = owned_ranges(partition, self.partitions, reply.key_group_factors)
                groups = [group for one in ranges for group in one][:_GROUPS_CHANGED]
                yield self._acknowledgement(SubtaskKey(0, store, partition), version, groups)

    def _acknowledgement(self, subtask: SubtaskKey, version: int, groups: Sequence[int]) -> Message:
        base = None
        if subtask in self.due:
            base = BaseSnapshot(_segment(SegmentKind.BASE, version - 1, groups), self.ids[subtask])
        ack = Ack(
            subtask,
            version - 1,
            version,
            str(uuid.uuid4()),
            Task(version, 0, subtask.partition, 0),
            version,
            _segment(SegmentKind.DELTA, version, groups),
            self.ids.get(subtask),
            base,
            rows_updated=1,
            timings_us={"snapshot": 12, "write": 40},
            job="run",
        )
        self.ids[subtask] = ack.state_id
        return wire.message_of(wire.ack(ack))


def measure(order: Order) -> dict[str, Any]:
    """Plays the batches and measures the CPU time that the side process spends on the messages of each."""
    workload = order.workload
    collect_seldom()
    executors = Executors(order.location, workload.partitions)
    job: Job | None = None
    times = []
    for version in range(1, WARMUPS + workload.batches + 1):
        header = executors.trigger(version)
        began = time.process_time()
        trigger = codec.decode(header)
        if job is None:
            job = Job(trigger, Environment(open_storage=lambda trigger: LocalStorage(trigger.location, durable=False)))
        reply = job.trigger(trigger)
        took = time.process_time() - began
        messages = list(executors.acknowledgements(version, reply))
        executors.due.clear()
        began = time.process_time()
        replies = []
        for message in messages:
            ack = codec.decode(message)
            answer = job.acknowledge(ack)
            if answer.compaction.is_full:
                executors.due.add(ack.subtask)
            replies.append(codec.ok(message.id, answer))
            job.housekeeping()
        protocol.to_batch(replies)
        times.append((took + time.process_time() - began) * 1000)
        if answer.completed_version != version:
            raise AssertionError(f"version {version} is incomplete after its last ack: {answer}")
    return {"samples": {"coordinator_ms": times[WARMUPS:]}, "rows": 0}


def _segment(kind: SegmentKind, version: int, groups: Sequence[int]) -> SegmentRef:
    sections = {group: [Section(((b"key%d" % group, b"v" * 60),))] for group in groups}
    made = encode_segment(kind, version, sections)
    first_version = 0 if kind is SegmentKind.BASE else version
    return segment_ref(first_version, version, made.key_groups, made.offsets, len(made.data), data=made.data)


def main(order: str, result: str) -> None:
    """Executes the order and writes the measurements as JSON."""
    Path(result).write_text(json.dumps(measure(Order.of_json(order))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
