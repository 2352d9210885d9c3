"""Requests to the coordinator and its replies: what the wire carries (docs/protocol.md, section 1.3).

`spark_ckpt.bridge.codec` derives the JSON from these types: a field has its name there, and may be absent if it has a
default. A named tuple is an array, and `job` is a column of the stream. docs/messages.md and docs/messages.json come
from these types and their docstrings. A `state_id` is Spark's unique id of the state of one store in one partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from spark_ckpt.checkpoint.batch import STANDALONE_PREFIX, Source, SparkBatch
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.checkpoint.policy import ShippingLimits
from spark_ckpt.checkpoint.restore_plan import AT_ONCE, RestorePlan
from spark_ckpt.completed import JobStatus
from spark_ckpt.format.integers import Int64, Natural
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import BatchLog, entry_name


@dataclass(slots=True, kw_only=True)
class JobMessage:
    """Message about a job.

    Args:
        job: run id of the query; for a store without a query `STANDALONE_PREFIX` and its directory.
    """

    job: str = ""


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

    operator_id: Natural
    name: str
    stores: tuple[str, ...]
    parallelism: Natural
    state_format_version: Natural | None = None


@dataclass(slots=True)
class Trigger(JobMessage):
    """Start of the first stateful task of a micro-batch.

    Args:
        location: checkpoint location, as Hadoop writes it.
        query_id: id of the query, which all of its runs share.
        batch_id: number of the batch.
        version: version of the state after the batch, `batch_id + 1`.
        operators: stateful operators of its plan.
        sources: sources, empty if Spark has no offsets of the batch.
        query_name: name of the query; None if it has none.
        checkpoint_format: Spark's format of the checkpoint, 1 or 2.
        settings: settings of spark-ckpt, by key.
        hadoop: settings that the file system of the location needs. They may hold credentials.
        spark_version: version of Spark.
        offset_log: text of Spark's `offsets/<batch_id>`; None if it has to be read.
        real_time_ms: length of the batch in real-time mode, in milliseconds; None in other modes.
        log_epoch: log epoch at the start of the run; None without our file manager.
        report_details: whether the driver wants operators and subtasks in reports. That of a job's first trigger
            counts.
        meaning: what the state of the query means, in a job's first trigger; None if the driver cannot tell.
    """

    location: str
    query_id: str
    batch_id: Natural
    version: Natural
    operators: tuple[Operator, ...]
    sources: tuple[Source, ...] = ()
    query_name: str | None = None
    checkpoint_format: Natural = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold credentials
    spark_version: str = ""
    offset_log: str | None = None
    real_time_ms: Natural | None = None
    log_epoch: Natural | None = None
    report_details: bool = False
    meaning: QueryMeaning | None = None

    @property
    def is_real_time(self) -> bool:
        """True if the batch runs in real-time mode, where its end offsets follow the acks."""
        return self.real_time_ms is not None

    @property
    def is_standalone(self) -> bool:
        """True for a store without a query."""
        return self.job.startswith(STANDALONE_PREFIX)

    def rescaled(self, before: SparkBatch) -> Iterator[tuple[Operator, int]]:
        """Operators of the batch that had another number of partitions in an earlier one, with that number: one for
        each of their stores."""
        had = {store.key: store.parallelism for store in before.stores}
        for operator in self.operators:
            for name in operator.stores:
                number = had.get(StoreKey(operator.operator_id, name), operator.parallelism)
                if number != operator.parallelism:
                    yield operator, number

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

    generation: Natural
    max_parallelism: Natural
    key_group_factors: tuple[Natural, ...]
    limits: ShippingLimits


@dataclass(slots=True)
class Locate(JobMessage):
    """Request for the location of a version's state.

    Args:
        subtask: the store.
        version: the version.
        state_id: id that Spark asks for; None with checkpoint format 1.
    """

    subtask: SubtaskKey
    version: Natural
    state_id: str | None = None


class Kind(Enum):
    """Kind of a compaction."""

    NONE = "none"
    FULL = "full"
    """A base: the whole table."""
    MERGE = "merge"
    """One delta in place of several."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """Request for a shorter chain, as part of a reply to a store, which works on it in the background.

    Args:
        kind: what the store should write, if anything.
        inputs: neighbouring deltas that the store should merge; empty unless it is a merge.
        digest: digest of the inputs, which comes back with the merged delta.
        required: the next ack must bring a base, because the chain has reached its bound.
        heavy: lighter merges of the executor should not wait for this one.
    """

    kind: Kind = Kind.NONE
    inputs: tuple[SegmentRef, ...] = ()
    digest: str = ""
    required: bool = False
    heavy: bool = False

    @property
    def is_full(self) -> bool:
        """True if a base is due."""
        return self.kind is Kind.FULL


NO_COMPACTION = CompactionRequest()
FULL_COMPACTION = CompactionRequest(Kind.FULL)
REQUIRED_COMPACTION = CompactionRequest(Kind.FULL, required=True)


@dataclass(frozen=True, slots=True)
class LocateReply:
    """Location of a version's state.

    Args:
        state_id: id of the state, as Spark writes it; None for version 0, which has no state.
        checkpoint_id: checkpoint that has it; None for version 0.
        max_parallelism: number of key groups.
        key_group_factors: numbering of the key groups.
        operator: Spark's short name of the operator.
        state_format_version: version of the operator's state format; None if it has none.
        rows: rows of the store; an estimate if the plan loads by segment.
        segments: its segments: bases first, then deltas, oldest first.
        compaction: what the store should do to the chain of the located version.
        limits: as in `TriggerReply`.
        restore: how the store loads the state.
        keep_deltas: as in `AckReply`.
    """

    state_id: str | None
    checkpoint_id: Natural | None
    max_parallelism: Natural
    key_group_factors: tuple[Natural, ...]
    operator: str
    state_format_version: Natural | None
    rows: Int64
    segments: tuple[SegmentRef, ...]
    compaction: CompactionRequest = NO_COMPACTION
    limits: ShippingLimits | None = None
    restore: RestorePlan = AT_ONCE
    keep_deltas: bool = False


class Task(NamedTuple):
    """Acknowledging task attempt.

    Args:
        stage_id: stage; -1 for a store without a query.
        stage_attempt: attempt of the stage.
        partition: partition of the task in its stage.
        attempt_number: attempt of the task.
        task_attempt_id: number of the attempt among all of the application.
        executor: id of its executor.
    """

    stage_id: Int64
    stage_attempt: Natural
    partition: Natural
    attempt_number: Natural
    task_attempt_id: Natural = 0
    executor: str = ""


@dataclass(slots=True, eq=False)
class BaseSnapshot:
    """Base snapshot in an ack: the whole table at its version.

    Args:
        segment: the base.
        state_id: id of that state.
    """

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
        digest: digest of the deltas that were merged, from the request.
    """

    segment: SegmentRef
    digest: str

    @property
    def first_version(self) -> int:
        """First version whose changes it has."""
        return self.segment.first_version

    @property
    def version(self) -> int:
        """Last version whose changes it has."""
        return self.segment.version


class InProgress(NamedTuple):
    """A base or a merge that a store is writing, or that waits for a later ack.

    Args:
        first_version: first version whose changes it has; 0 for a base.
        version: last of these versions; 0 for a base whose writing has not begun.
    """

    first_version: Natural
    version: Natural

    @property
    def is_base(self) -> bool:
        """True for a base."""
        return self.first_version == 0


@dataclass(slots=True, eq=False)  # the codec completes it, and then nothing changes it
class Ack(JobMessage):
    """Acknowledgement of a subtask's store.

    Args:
        subtask: the store.
        batch_id: number of the batch.
        version: version of the state after the batch.
        state_id: id of that state, a new UUID.
        task: the attempt that acknowledges.
        rows: rows of the store after the batch.
        delta: changes of the batch.
        base_state_id: id of the state that the batch began with; None for version 0.
        base: base that an earlier reply asked for; None if none is ready.
        rows_updated: rows that the batch wrote.
        rows_removed: rows that it removed.
        timings_us: microseconds of `snapshot`, `write` and, if the batch had to load state, `restore`.
        compaction_failure: failure of a base or a merge since the last ack of the store that counts; None if none has
            failed.
        merged: merged deltas that an earlier reply asked for; None if none are ready.
        in_progress: bases and merges that the store is writing or that wait for a later ack, oldest first.
    """

    subtask: SubtaskKey
    batch_id: Natural
    version: Natural
    state_id: str
    task: Task
    rows: Int64
    delta: SegmentRef
    base_state_id: str | None = None
    base: BaseSnapshot | None = None
    rows_updated: Int64 = 0
    rows_removed: Int64 = 0
    timings_us: Mapping[str, Int64] = field(default_factory=dict)
    compaction_failure: str | None = None
    merged: MergedDeltas | None = None
    in_progress: tuple[InProgress, ...] = ()

    @property
    def segments(self) -> list[SegmentRef]:
        """Its segments, in the order of their blocks in a message."""
        return [self.delta, *(brought.segment for brought in (self.base, self.merged) if brought is not None)]

    @property
    def paths(self) -> list[str]:
        """Files of its segments."""
        return [segment.path for segment in self.segments if segment.path is not None]


@dataclass(slots=True)
class Rescale(JobMessage):
    """Request for another number of partitions, between two batches of a running query. Spark is about to write the
    offsets of the next batch.

    Args:
        version: version of the state that the next batch starts from.
        partitions: number of partitions from that batch on.
    """

    version: Natural
    partitions: Natural


@dataclass(frozen=True, slots=True)
class RescaleReply:
    """Reply to `Rescale`: the next batch may have the number. The trigger of a batch that has it begins with the state
    assigned to its partitions.

    Args:
        before: number of partitions before.
        state_ids: ids of the states that the batch begins with, by operator, a list per partition with one id per
            store; empty with checkpoint format 1.
    """

    before: Natural
    state_ids: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)


@dataclass(slots=True)
class EndOffsets(JobMessage):
    """End offsets of a batch in real-time mode, known after its tasks have ended.

    Args:
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        offset_log: text of `offsets/<batch_id>`, which Spark is about to write.
    """

    batch_id: Natural
    version: Natural
    offset_log: str


@dataclass(frozen=True, slots=True)
class EndOffsetsReply:
    """Reply to `EndOffsets`.

    Args:
        completed: id of the durable checkpoint.
        completed_version: version of its state.
    """

    completed: Natural
    completed_version: Natural


class Outcome(Enum):
    """Outcome of an ack (Flink: `PendingCheckpoint.TaskAcknowledgeResult`, and Spark's
    `CommitDeniedException`)."""

    SUCCESS = "success"
    DUPLICATE = "duplicate"
    DENIED = "denied"
    UNKNOWN = "unknown"
    DISCARDED = "discarded"


@dataclass(slots=True)  # not frozen: one per ack
class AckReply:
    """Reply to an ack.

    Args:
        outcome: outcome of the ack.
        state_id: state id that counts for this version; None before the first.
        compaction: what the store should do to its chain.
        completed: id of the checkpoint that this ack completed, or None.
        completed_version: newest completed version of this job, or None.
        reason: reason of a rejection, as text; None for an ack that counts, or if `state_id` is the reason.
        keep_deltas: whether the store should keep copies of its deltas at hand, because they will be merged.
    """

    outcome: Outcome
    state_id: str | None
    compaction: CompactionRequest = NO_COMPACTION
    completed: Natural | None = None
    completed_version: Natural | None = None
    reason: str | None = None
    keep_deltas: bool = False


@dataclass(slots=True)
class Decline(JobMessage):
    """Decline of a store without a snapshot, whose task is about to fail.

    Args:
        subtask: the store.
        batch_id: number of the batch.
        version: version of the state after the batch.
        task: the attempt.
        reason: text for people.
    """

    subtask: SubtaskKey
    batch_id: Natural
    version: Natural
    task: Task
    reason: str


@dataclass(slots=True)
class Unreadable(JobMessage):
    """Report of a store that could not read a version from its files.

    Args:
        subtask: the store.
        version: the version.
        reason: text for people.
    """

    subtask: SubtaskKey
    version: Natural
    reason: str


@dataclass(slots=True)
class TaskFailed(JobMessage):
    """Failure of a task attempt.

    Args:
        stage_id: stage.
        stage_attempt: attempt of the stage.
        partition: partition of the task in its stage.
        attempt_number: attempt of the task.
        reason: reason that Spark gives.
    """

    stage_id: Int64
    stage_attempt: Natural
    partition: Natural
    attempt_number: Natural
    reason: str = ""


@dataclass(slots=True)
class Close(JobMessage):
    """End of a query's run.

    Args:
        status: how it has ended.
    """

    status: JobStatus = JobStatus.FINISHED


Request: TypeAlias = Trigger | Locate | Ack | EndOffsets | Rescale | Decline | Unreadable | TaskFailed | Close
"""Request of a job."""


class Event(Enum):
    """Unsolicited notification of executors (Flink: `notifyCheckpointComplete`, `notifyCheckpointAborted`,
    `notifyCheckpointSubsumed`)."""

    COMPLETE = "complete"
    ABORTED = "aborted"
    SUBSUMED = "subsumed"
    GOING_BACK = "going_back"
    RESCALE = "rescale"
    """For the driver only: it should ask for another number of partitions before the next batch."""


@dataclass(frozen=True, slots=True)
class Notification:
    """Notification about the checkpoint of a version, or about the whole job.

    Args:
        job: as in `JobMessage`.
        event: what has happened.
        version: version of the checkpoint; None if it is about the job.
        checkpoint_id: id of the checkpoint; None if it has none.
        reason: text for people; None without one.
        partitions: number of partitions of a rescale; None for any other event.
    """

    job: str
    event: Event
    version: Natural | None
    checkpoint_id: Natural | None = None
    reason: str | None = None
    partitions: Natural | None = None
