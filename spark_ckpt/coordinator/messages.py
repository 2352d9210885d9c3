"""Requests to the coordinator and its replies, without the wire (docs/protocol.md, section 1.3).

A `state_id` is the field `ckpt_id` of the wire: Spark's unique id of the state of one store of one partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.checkpoint.batch import STANDALONE_PREFIX, Source
from spark_ckpt.format.keys import PartitionFilter, SubtaskKey


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator of a batch's plan.

    Args:
        operator_id: Spark's number of it in the query.
        name: Spark's short name.
        stores: names of its state stores.
        parallelism: number of tasks it runs as.
        state_format_version: of its state, where the operator has one.
    """

    operator_id: int
    name: str
    stores: tuple[str, ...]
    parallelism: int
    state_format_version: int | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    """A micro-batch runs its first stateful task. Fields as in docs/protocol.md."""

    job: str
    location: str
    query_id: str
    batch_id: int
    version: int
    operators: tuple[Operator, ...]
    sources: tuple[Source, ...] = ()
    query_name: str | None = None
    checkpoint_format: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold credentials
    spark_version: str = ""
    offset_log: str | None = None

    @property
    def is_standalone(self) -> bool:
        """True if the store belongs to no query."""
        return self.job.startswith(STANDALONE_PREFIX)

    @property
    def acks(self) -> int:
        """Number of acks that complete the checkpoint: one for each store of each subtask."""
        return sum(operator.parallelism * len(operator.stores) for operator in self.operators)


@dataclass(frozen=True, slots=True)
class TriggerReply:
    """Values in force for a batch.

    Args:
        generation: of the job's claim.
        max_parallelism: number of key groups.
        key_group_factors: their numbering.
        ack_threshold: bytes of one segment up to which it travels with an ack.
    """

    generation: int
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    ack_threshold: int


@dataclass(frozen=True, slots=True)
class Locate:
    """Request for the state of a version. `state_id` is the id that Spark asks for, or None."""

    job: str
    subtask: SubtaskKey
    version: int
    state_id: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LocatedSegment:
    """A segment of the answer.

    Args:
        is_base: base or delta.
        path: relative to the `ckpt` directory; None if `data` holds the bytes.
        offsets: int64, start of each block in the file or in `data`.
        size: bytes of the segment.
        data: the bytes of an inline segment.
        filters: what a row must pass to count, all of them.
    """

    is_base: bool
    path: str | None
    offsets: NDArray[np.int64]
    size: int
    data: bytes = b""
    filters: tuple[PartitionFilter, ...] = ()


@dataclass(frozen=True, slots=True)
class LocateReply:
    """Location of the state of a version. `checkpoint_id` is None for version 0, which has no state. `base_due` and
    `base_required` are as in `AckReply`, of a base of the located version; `ack_threshold` is as in
    `TriggerReply`."""

    state_id: str | None
    checkpoint_id: int | None
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    operator: str
    state_format_version: int | None
    rows: int
    segments: tuple[LocatedSegment, ...]
    base_due: bool = False
    base_required: bool = False
    ack_threshold: int | None = None


class Task(NamedTuple):
    """The task attempt that acknowledges. `partition` is the task's in its stage."""

    stage_id: int
    stage_attempt: int
    partition: int
    attempt_number: int
    task_attempt_id: int = 0
    executor: str = ""


@dataclass(slots=True, eq=False)  # not frozen: making a frozen one costs several times as much
class Segment:
    """A segment as an ack describes it. Not changed once made.

    Args:
        key_groups: uint32, ascending.
        offsets: int64, counted from the start of the segment.
        size: bytes of the segment.
        rows: entries in it.
        path: file relative to the `ckpt` directory; None if `data` holds the bytes.
        data: the bytes.
        start: where in the file it begins.
        file_size: bytes of the file; None if the segment is all of it.
    """

    key_groups: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    size: int
    rows: int
    path: str | None = None
    data: bytes | memoryview = b""
    start: int = 0
    file_size: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BaseSnapshot:
    """A base that travels with an ack: the whole table as it was at `version`, in the state `state_id`."""

    segment: Segment
    version: int
    state_id: str


@dataclass(slots=True, eq=False)  # not frozen, as `Segment`
class Ack:
    """A store of a subtask is ready. Fields as in docs/protocol.md. Not changed once made."""

    job: str
    subtask: SubtaskKey
    batch_id: int
    version: int
    state_id: str
    task: Task
    rows: int
    delta: Segment
    base_state_id: str | None = None
    base: BaseSnapshot | None = None
    rows_updated: int = 0
    rows_removed: int = 0
    timings_us: Mapping[str, int] = field(default_factory=dict)
    base_failure: str | None = None

    @property
    def paths(self) -> list[str]:
        """The files that it brings."""
        segments = (self.delta, self.base.segment) if self.base else (self.delta,)
        return [segment.path for segment in segments if segment.path is not None]


class Outcome(Enum):
    """Outcome of an ack (Flink: `PendingCheckpoint.TaskAcknowledgeResult`, and Spark's
    `CommitDeniedException`)."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    DENIED = "denied"
    UNKNOWN = "unknown"
    DISCARDED = "discarded"


class AckReply(NamedTuple):
    """The answer to an ack.

    Args:
        outcome: of the ack.
        state_id: the state that counts for this version, if one does.
        base_due: whether the store should bring a base with a later ack.
        completed: the checkpoint that is complete with this ack, or None.
        completed_version: newest version of this job that is complete, or None.
        reason: why the ack does not count, for a person; None where it does, or where the state that counts says it.
        base_required: whether the next ack of the store must bring a base, because its chain has reached the bound.
    """

    outcome: Outcome
    state_id: str | None
    base_due: bool = False
    completed: int | None = None
    completed_version: int | None = None
    reason: str | None = None
    base_required: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """A store could not make its snapshot, and its task is about to fail. Fields as in docs/protocol.md."""

    job: str
    subtask: SubtaskKey
    batch_id: int
    version: int
    task: Task
    reason: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A store could not read the state of a version from its files. Fields as in docs/protocol.md."""

    job: str
    subtask: SubtaskKey
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A task attempt has ended, and not well."""

    job: str
    stage_id: int
    stage_attempt: int
    partition: int
    attempt_number: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """A run of a query has ended: `finished`, `failed`, `cancelled` or `suspended`."""

    job: str
    status: str


class Event(Enum):
    """Unsolicited notification of executors (Flink: `notifyCheckpointComplete`, `notifyCheckpointAborted`,
    `notifyCheckpointSubsumed`)."""

    COMPLETE = "complete"
    ABORTED = "aborted"
    SUBSUMED = "subsumed"
    GOING_BACK = "going_back"


NO_VERSION = -1
"""In place of a version where a notification is about the whole job."""


@dataclass(frozen=True, slots=True)
class Notification:
    """Something has become of the checkpoint of a version. Fields as in docs/protocol.md, section 1.4."""

    job: str
    event: Event
    version: int
    checkpoint_id: int | None = None
    reason: str | None = None
