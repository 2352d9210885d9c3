"""Sample pending checkpoint and messages of its tasks."""

from __future__ import annotations

import uuid

from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.messages import Ack, Operator, Task, TaskFailed

JOIN = Operator(0, "symmetricHashJoin", ("left", "right"), 2)
LIMIT = Operator(1, "globalLimit", ("default",), 1)
NOW = 1_700_000_000_000


def pending() -> PendingCheckpoint:
    return PendingCheckpoint([JOIN, LIMIT], 4, 5, NOW)


def ack(
    operator: int = 0,
    store: str = "left",
    partition: int = 0,
    *,
    stage: int = 1,
    stage_attempt: int = 0,
    attempt: int = 0,
) -> Ack:
    return Ack(
        job="job",
        subtask=SubtaskKey(operator, store, partition),
        batch_id=4,
        version=5,
        state_id=str(uuid.uuid4()),
        task=Task(stage, stage_attempt, partition, attempt),
        rows=1,
        delta=SegmentRef(5, 5, NO_BLOCKS, 0),
    )


def failure(
    partition: int = 0, *, stage: int = 1, stage_attempt: int = 0, attempt: int = 0, reason: str = "x"
) -> TaskFailed:
    return TaskFailed(stage, stage_attempt, partition, attempt, reason, job="job")
