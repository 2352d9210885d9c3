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

import numpy as np

from benchmarks.stores.job import Order
from spark_ckpt.bridge import protocol
from spark_ckpt.bridge.__main__ import collect_seldom
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.open_job import Environment
from spark_ckpt.format.key_groups import owned_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segments import Section, SegmentKind
from spark_ckpt.messages import TriggerReply
from spark_ckpt.storage import LocalStorage
from tests.support.segments import Segment, encode_segment

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

    def trigger(self, version: int) -> dict[str, Any]:
        """Header of the message that begins a batch."""
        operator = {"operator_id": 0, "name": "symmetricHashJoin", "stores": STORES, "parallelism": self.partitions}
        return {
            "job": "run",
            "location": self.location,
            "query_id": "query",
            "batch_id": version - 1,
            "version": version,
            "operators": [operator],
            "sources": [{"name": "source", "offset": '{"topic":{"0":5}}'}],
            "spark_version": "4.2.0",
        }

    def acknowledgements(self, version: int, reply: TriggerReply) -> Iterator[protocol.Message]:
        """One acknowledgement per subtask, store by store."""
        for store in STORES:
            for partition in range(self.partitions):
                ranges = owned_ranges(partition, self.partitions, reply.key_group_factors)
                groups = [group for one in ranges for group in one][:_GROUPS_CHANGED]
                yield self._acknowledgement(SubtaskKey(0, store, partition), version, groups)

    def _acknowledgement(self, subtask: SubtaskKey, version: int, groups: Sequence[int]) -> protocol.Message:
        delta = _segment(SegmentKind.DELTA, version, groups)
        segments, base = [delta], None
        if subtask in self.due:
            made = _segment(SegmentKind.BASE, version - 1, groups)
            segments.append(made)
            base = _described(made) | {"version": version - 1, "ckpt_id": self.ids[subtask]}
        state_id = str(uuid.uuid4())
        header = {
            "job": "run",
            "batch_id": version - 1,
            "operator_id": subtask.operator_id,
            "store": subtask.store,
            "partition": subtask.partition,
            "version": version,
            "ckpt_id": state_id,
            "base_ckpt_id": self.ids.get(subtask),
            "task": {"stage_id": version, "stage_attempt": 0, "partition": subtask.partition, "attempt_number": 0},
            "rows": version,
            "rows_updated": 1,
            "delta": _described(delta),
            "base": base,
            "timings_us": {"snapshot": 12, "write": 40},
        }
        self.ids[subtask] = state_id
        index = b"".join(s.key_groups.astype("<u4").tobytes() + s.offsets.astype("<i8").tobytes() for s in segments)
        return protocol.Message(0, "ack", json.dumps(header), index, b"".join(segment.data for segment in segments))


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
        trigger = protocol.parse_trigger(header)
        if job is None:
            job = Job(trigger, Environment(open_storage=lambda trigger: LocalStorage(trigger.location, durable=False)))
        reply = job.trigger(trigger)
        took = time.process_time() - began
        messages = list(executors.acknowledgements(version, reply))
        executors.due.clear()
        began = time.process_time()
        replies = []
        for message in messages:
            ack = protocol.parse_ack(protocol.parse_header(message), message.index, message.payload)
            answer = job.acknowledge(ack)
            if answer.base_due:
                executors.due.add(ack.subtask)
            replies.append(protocol.ack_reply(message.id, answer))
            job.housekeeping()
        protocol.to_batch(replies)
        times.append((took + time.process_time() - began) * 1000)
        if answer.completed_version != version:
            raise AssertionError(f"version {version} is incomplete after its last ack: {answer}")
    return {"samples": {"coordinator_ms": times[WARMUPS:]}, "rows": 0}


def _segment(kind: SegmentKind, version: int, groups: Sequence[int]) -> Segment:
    return encode_segment(kind, version, {group: [Section(((b"key%d" % group, b"v" * 60),))] for group in groups})


def _described(segment: Segment) -> dict[str, Any]:
    return {"groups": len(np.asarray(segment.key_groups)), "bytes": len(segment.data), "rows": segment.rows}


def main(order: str, result: str) -> None:
    """Executes the order and writes the measurements as JSON."""
    Path(result).write_text(json.dumps(measure(Order.of_json(order))), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
