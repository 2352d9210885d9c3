"""What the coordinator is asked and what it answers, without the wire (docs/protocol.md, section 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STANDALONE_PREFIX = "standalone:"
"""How the job of a store begins that has no query behind it."""


class StoreKey(NamedTuple):
    """A store of an operator."""

    operator_id: int
    store: str

    def __str__(self) -> str:
        return f"operator {self.operator_id}, store {self.store}"


class SubtaskKey(NamedTuple):
    """A store of a subtask: what acknowledges."""

    operator_id: int
    store: str
    partition: int

    @property
    def of_operator(self) -> StoreKey:
        """The store without the subtask."""
        return StoreKey(self.operator_id, self.store)

    def __str__(self) -> str:
        return f"operator {self.operator_id}, store {self.store}, partition {self.partition}"


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
class Source:
    """A source, and the offset that the batch reads up to, as Spark writes it; None if it has none yet."""

    name: str
    offset: str | None = None


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
        """Whether no query is behind the store."""
        return self.job.startswith(STANDALONE_PREFIX)


@dataclass(frozen=True, slots=True)
class TriggerReply:
    """Generation of the job's claim, number of key groups, and their chain."""

    generation: int
    max_parallelism: int
    key_group_factors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Locate:
    """Where is the state of a version? `ckpt_id` is the id that Spark asks for, or None."""

    job: str
    subtask: SubtaskKey
    version: int
    ckpt_id: str | None = None


class PartitionFilter(NamedTuple):
    """Which rows of a segment count: those that Spark's hash sends to one of these partitions.

    A rescale to a parallelism that does not divide the number of key groups makes several subtasks read the same key
    groups. Each takes its own rows of them.

    Args:
        parallelism: number of partitions that the hash is taken modulo of.
        partitions: ascending.
    """

    parallelism: int
    partitions: tuple[int, ...]


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
    """Where the state of a version is. `checkpoint_id` is None for version 0, which has no state."""

    ckpt_id: str | None
    checkpoint_id: int | None
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    operator: str
    state_format_version: int | None
    rows: int
    segments: tuple[LocatedSegment, ...]


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
    """A base that travels with an ack: the whole table as it was at `version`, in the state `ckpt_id`."""

    segment: Segment
    version: int
    ckpt_id: str


@dataclass(slots=True, eq=False)  # not frozen, as `Segment`
class Ack:
    """A store of a subtask is ready. Fields as in docs/protocol.md. Not changed once made."""

    job: str
    subtask: SubtaskKey
    batch_id: int
    version: int
    ckpt_id: str
    task: Task
    rows: int
    delta: Segment
    base_ckpt_id: str | None = None
    base: BaseSnapshot | None = None
    rows_updated: int = 0
    rows_removed: int = 0
    timings_us: Mapping[str, int] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        """The files that it brings."""
        segments = (self.delta, self.base.segment) if self.base else (self.delta,)
        return [segment.path for segment in segments if segment.path is not None]

    @property
    def group_path(self) -> str | None:
        """The file that it brings together with other acks of its batch, or None."""
        return self.delta.path if self.delta.file_size is not None else None


class Outcome(Enum):
    """What becomes of an ack (Flink: `PendingCheckpoint.TaskAcknowledgeResult`, and Spark's
    `CommitDeniedException`)."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    DENIED = "denied"
    UNKNOWN = "unknown"
    DISCARDED = "discarded"


class AckReply(NamedTuple):
    """The answer to an ack.

    Args:
        outcome: what becomes of it.
        ckpt_id: the state that counts for this version, if one does.
        base_due: whether the store should bring a base with a later ack.
        completed: the checkpoint that is complete with this ack, or None.
        completed_version: newest version of this job that is complete, or None.
        reason: why the ack does not count, for a person; None where it does, or where the state that counts says it.
    """

    outcome: Outcome
    ckpt_id: str | None
    base_due: bool = False
    completed: int | None = None
    completed_version: int | None = None
    reason: str | None = None


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
    """What executors are told without having asked (Flink: `notifyCheckpointComplete`, `notifyCheckpointAborted`,
    `notifyCheckpointSubsumed`)."""

    COMPLETE = "complete"
    ABORTED = "aborted"
    SUBSUMED = "subsumed"


@dataclass(frozen=True, slots=True)
class Notification:
    """Something has become of the checkpoint of a version. Fields as in docs/protocol.md, section 1.4."""

    job: str
    event: Event
    version: int
    checkpoint_id: int | None = None
    reason: str | None = None
