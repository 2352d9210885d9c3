"""Requests to the coordinator and its replies, independent of the wire (docs/protocol.md, section 1.3).

A `state_id` is the field `ckpt_id` of the wire: Spark's unique id of the state of one store in one partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from spark_ckpt.checkpoint.batch import STANDALONE_PREFIX, Source
from spark_ckpt.checkpoint.policy import ShippingLimits
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import BatchLog, entry_name


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator of a batch's plan.

    Args:
        operator_id: Spark's number of the operator in the query.
        name: Spark's short name.
        stores: names of its state stores.
        parallelism: number of its tasks.
        state_format_version: version of its state format; None if the operator has none.
    """

    operator_id: int
    name: str
    stores: tuple[str, ...]
    parallelism: int
    state_format_version: int | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    """Start of the first stateful task of a micro-batch. Fields as in docs/protocol.md."""

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
    real_time_ms: int | None = None
    log_epoch: int | None = None
    report_details: bool = False

    @property
    def is_real_time(self) -> bool:
        """True if the batch runs in real-time mode, where its end offsets follow the acks."""
        return self.real_time_ms is not None

    @property
    def is_standalone(self) -> bool:
        """True for a store without a query."""
        return self.job.startswith(STANDALONE_PREFIX)

    def with_end_offsets(self, offset_log: str) -> Trigger:
        """Copy with the end offsets of its batch, which Spark knows after it (Spark:
        `MicroBatchExecution.markMicroBatchEnd`).

        Args:
            offset_log: text of `offsets/<batch>`.

        Raises:
            SparkLogFormatError: the text is not an entry of Spark's offset log.
        """
        entry = OffsetEntry.decode(offset_log.encode(), entry_name(BatchLog.OFFSETS, self.batch_id))
        names = sorted(entry.offsets) if entry.version > 1 else list(entry.offsets)
        sources = tuple(Source(name, entry.offsets[name]) for name in names)
        return replace(self, sources=sources, offset_log=offset_log)

    @property
    def acks(self) -> int:
        """Number of acks that complete the checkpoint: one for each store of each subtask."""
        return sum(operator.parallelism * len(operator.stores) for operator in self.operators)


@dataclass(frozen=True, slots=True)
class TriggerReply:
    """Effective values for a batch.

    Args:
        generation: generation of the job's claim.
        max_parallelism: number of key groups.
        key_group_factors: numbering of the key groups.
        limits: how stores ship their segments.
    """

    generation: int
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    limits: ShippingLimits


@dataclass(frozen=True, slots=True)
class Locate:
    """Request for the location of a version's state. `state_id` is the id that Spark asks for, or None."""

    job: str
    subtask: SubtaskKey
    version: int
    state_id: str | None = None


@dataclass(frozen=True, slots=True)
class LocateReply:
    """Location of a version's state. `checkpoint_id` is None for version 0, which has no state. `base_due` and
    `base_required` request a base of the located version, and `merge` merged deltas; these and `keep_deltas` are as in
    `AckReply`; `limits` is that of `TriggerReply`. With `by_key_group` the store may load a key group when it needs it:
    `rows` is exact, and the segments have their key groups."""

    state_id: str | None
    checkpoint_id: int | None
    max_parallelism: int
    key_group_factors: tuple[int, ...]
    operator: str
    state_format_version: int | None
    rows: int
    segments: tuple[SegmentRef, ...]
    base_due: bool = False
    base_required: bool = False
    merge: tuple[SegmentRef, ...] = ()
    limits: ShippingLimits | None = None
    by_key_group: bool = False
    keep_deltas: bool = False


class Task(NamedTuple):
    """Acknowledging task attempt. `partition` is the task's partition in its stage."""

    stage_id: int
    stage_attempt: int
    partition: int
    attempt_number: int
    task_attempt_id: int = 0
    executor: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class BaseSnapshot:
    """Base snapshot in an ack: the whole table at its version, with state id `state_id`."""

    segment: SegmentRef
    state_id: str

    @property
    def version(self) -> int:
        """Version of the table."""
        return self.segment.version


@dataclass(frozen=True, slots=True, eq=False)
class MergedDeltas:
    """Merged deltas in an ack.

    Args:
        segment: the merged delta.
        inputs: digest of the deltas that were merged, from the request.
    """

    segment: SegmentRef
    inputs: str

    @property
    def first_version(self) -> int:
        """First version whose changes it has."""
        return self.segment.first_version

    @property
    def version(self) -> int:
        """Last version whose changes it has."""
        return self.segment.version


class InProgress(NamedTuple):
    """A base or a merge that a store is writing, or that waits for a later ack: the versions whose changes it has. A
    base has those from version 0 on, and the version 0 until its writing begins."""

    first_version: int
    version: int

    @property
    def is_base(self) -> bool:
        """True for a base."""
        return self.first_version == 0


@dataclass(slots=True, eq=False)  # not frozen, as `SegmentRef`
class Ack:
    """Acknowledgement of a subtask's store. Fields as in docs/protocol.md. Immutable by convention."""

    job: str
    subtask: SubtaskKey
    batch_id: int
    version: int
    state_id: str
    task: Task
    rows: int
    delta: SegmentRef
    base_state_id: str | None = None
    base: BaseSnapshot | None = None
    rows_updated: int = 0
    rows_removed: int = 0
    timings_us: Mapping[str, int] = field(default_factory=dict)
    base_failure: str | None = None
    merged: MergedDeltas | None = None
    in_progress: tuple[InProgress, ...] = ()

    @property
    def paths(self) -> list[str]:
        """Files of its segments."""
        segments = [self.delta, *(brought.segment for brought in (self.base, self.merged) if brought is not None)]
        return [segment.path for segment in segments if segment.path is not None]


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """End offsets of a batch in real-time mode, known after its tasks have ended.

    Args:
        job: run of the query.
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        offset_log: text of `offsets/<batch_id>`, which Spark is about to write.
    """

    job: str
    batch_id: int
    version: int
    offset_log: str


class EndOffsetsReply(NamedTuple):
    """Reply to `EndOffsets`: the durable checkpoint and its version."""

    completed: int
    completed_version: int


class Outcome(Enum):
    """Outcome of an ack (Flink: `PendingCheckpoint.TaskAcknowledgeResult`, and Spark's
    `CommitDeniedException`)."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    DENIED = "denied"
    UNKNOWN = "unknown"
    DISCARDED = "discarded"


class AckReply(NamedTuple):
    """Reply to an ack.

    Args:
        outcome: outcome of the ack.
        state_id: state id that counts for this version; None before the first.
        base_due: whether the store should bring a base with a later ack.
        completed: id of the checkpoint that this ack completed, or None.
        completed_version: newest completed version of this job, or None.
        reason: reason of a rejection, as text; None for an ack that counts, or if `state_id` is the reason.
        base_required: whether the store's next ack must bring a base, because its chain has reached the bound.
        merge: neighbouring deltas that the store should merge into one, for a later ack; empty if none.
        keep_deltas: whether the store should keep copies of its deltas at hand, because they will be merged.
    """

    outcome: Outcome
    state_id: str | None
    base_due: bool = False
    completed: int | None = None
    completed_version: int | None = None
    reason: str | None = None
    base_required: bool = False
    merge: tuple[SegmentRef, ...] = ()
    keep_deltas: bool = False


@dataclass(frozen=True, slots=True)
class Decline:
    """Decline of a store without a snapshot, whose task is about to fail. Fields as in docs/protocol.md."""

    job: str
    subtask: SubtaskKey
    batch_id: int
    version: int
    task: Task
    reason: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Report of a store that could not read a version from its files. Fields as in docs/protocol.md."""

    job: str
    subtask: SubtaskKey
    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """Failure of a task attempt."""

    job: str
    stage_id: int
    stage_attempt: int
    partition: int
    attempt_number: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """End of a query's run: `finished`, `failed`, `cancelled` or `suspended`."""

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
"""Version in notifications about the whole job."""


@dataclass(frozen=True, slots=True)
class Notification:
    """Notification about the checkpoint of a version. Fields as in docs/protocol.md, section 1.4."""

    job: str
    event: Event
    version: int
    checkpoint_id: int | None = None
    reason: str | None = None
