"""A real request of each kind, and changes of it that no driver sends."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import numpy as np

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.format.keys import PartitionFilter, SubtaskKey
from spark_ckpt.messages import (
    Ack,
    BaseSnapshot,
    Close,
    Decline,
    EndOffsets,
    InProgress,
    MergedDeltas,
    Operator,
    Rescale,
    Task,
    TaskFailed,
    Trigger,
    Unreadable,
)
from tests.bridge import wire
from tests.support.meanings import function, meaning
from tests.support.segments import segment_ref

MARKER = "hunter2-hunter2"
"""A credential in the settings of the requests."""

SUBTASK = SubtaskKey(1, "left", 2)
TASK = Task(1, 0, 2, 3, 17, "1")


def requests() -> list[wire.Request]:
    """A real request of each kind."""
    groups, offsets = np.arange(2, dtype=np.uint32), np.array([0, 7])
    delta = segment_ref(5, 5, groups, offsets, 20, data=b"d" * 20)
    base = segment_ref(0, 3, groups, offsets + 5, 30, "shared/x", 40, filters=(PartitionFilter(3, (0, 2)),))
    merged = segment_ref(2, 4, groups, offsets, 10, data=b"m" * 10)
    state_id = str(uuid.UUID(int=7))
    ack = Ack(SUBTASK, 4, 5, state_id, TASK, 9, delta, state_id, BaseSnapshot(base, state_id), timings_us={"write": 40})
    ack.merged = MergedDeltas(merged, "digest")
    ack.in_progress = (InProgress(0, 2), InProgress(6, 7))
    ack.compaction_failure = "no space left"
    trigger = Trigger(
        "file:/q",
        "query",
        4,
        5,
        (Operator(1, "dedupe", ("left", "right"), 3, 2),),
        (Source("source", '{"topic":{"0":5}}'),),
        query_name="name",
        settings={f"key-{MARKER}": MARKER},
        hadoop={f"fs.s3a.{MARKER}": MARKER},
        log_epoch=1,
        meaning=meaning(functions=(function("sum(0.v)"),)),
    )
    return [
        wire.START,
        ("check", {"settings": {f"key-{MARKER}": MARKER}}, b"", b""),
        wire.trigger(trigger),
        wire.locate("job", SUBTASK, 5, state_id),
        wire.ack(ack),
        wire.end_offsets(EndOffsets(4, 5, "v1\n{}\n0")),
        wire.rescale(Rescale(5, 8)),
        wire.decline(Decline(SUBTASK, 4, 5, TASK, "no space left")),
        wire.unreadable(Unreadable(SUBTASK, 5, "checksum")),
        wire.task_failed(TaskFailed(1, 0, 2, 3, "killed")),
        wire.close(Close()),
    ]


KINDS = [request[0] for request in requests()]
"""Kinds of the requests."""

_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    1.0,
    2**31,
    2**32,
    2**63,
    -(2**63) - 1,
    2**64,
    10**30,
    float("nan"),
    float("inf"),
    "",
    "x" * 5000,
    "\ud800",
    "\0",
    [],
    [0],
    [[]],
    {},
    {"": {}},
)


def changes(value: Any) -> Iterator[Any]:
    """Copies of a JSON value, each with one of its parts replaced, removed or doubled."""
    yield from _VALUES
    if isinstance(value, dict):
        for name, part in value.items():
            rest = {other: value[other] for other in value if other != name}
            yield rest
            yield {**value, f"{name}_": part}
            for changed in changes(part):
                yield {**value, name: changed}
    elif isinstance(value, list | tuple):
        for i, part in enumerate(value):
            yield [*value[:i], *value[i + 1 :]]
            yield [*value, part]
            for changed in changes(part):
                yield [*value[:i], changed, *value[i + 1 :]]


def without_job(header: dict[str, Any]) -> dict[str, Any]:
    """The header without the job, which is a column of the stream."""
    return {name: value for name, value in header.items() if name != "job"}
