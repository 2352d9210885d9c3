"""What each checkpoint took, for the last of them (Flink: `CheckpointStatsTracker`, `CheckpointStatsHistory`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from spark_ckpt.coordinator.failures import Abort
from spark_ckpt.coordinator.messages import SubtaskKey
from spark_ckpt.coordinator.pending import PendingCheckpoint

_MOST_SLOWEST = 3


class CheckpointStatus(Enum):
    """What has become of a checkpoint (Flink: `CheckpointStatsStatus`)."""

    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number differs between subtasks: least, mean (rounded) and most."""

    least: int
    mean: int
    most: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """The spread of some values, of which there must be one."""
        return cls(min(values), round(sum(values) / len(values)), max(values))


class SubtaskStateStats(NamedTuple):
    """What one subtask took (Flink: `SubtaskStateStats`).

    Args:
        subtask: which.
        executor: where it ran.
        snapshot_us: microseconds that its task was held up for the snapshot (Flink: the synchronous part).
        write_us: microseconds of writing it (Flink: the asynchronous part).
        start_delay_ms: milliseconds from the trigger to the begin of the snapshot, most of which the batch works.
        delta_bytes: bytes of its changes.
        rows: rows that it has.
    """

    subtask: SubtaskKey
    executor: str
    snapshot_us: int
    write_us: int
    start_delay_ms: int
    delta_bytes: int
    rows: int


def stats_of_subtasks(pending: PendingCheckpoint) -> list[SubtaskStateStats]:
    """What the subtasks took that have acknowledged, in the order in which they did."""
    return [
        SubtaskStateStats(
            key,
            ack.task.executor,
            snapshot := ack.timings_us.get("snapshot", 0),
            write := ack.timings_us.get("write", 0),
            # Clocks may be set back, and those of executors and driver round differently.
            max(0, pending.arrived_ms[key] - pending.triggered_ms - (snapshot + write) // 1000),
            ack.delta.size,
            ack.rows,
        )
        for key, ack in sorted(pending.acks.items(), key=lambda item: pending.arrived_ms[item[0]])
    ]


@dataclass(frozen=True, slots=True)
class SubtaskStats:
    """How the subtasks differ that have acknowledged.

    Args:
        snapshot_us: of these figures of `SubtaskStateStats` least, mean and most.
        write_us: as above.
        start_delay_ms: as above.
        slowest: those whose acks came last, latest first.
    """

    snapshot_us: Spread
    write_us: Spread
    start_delay_ms: Spread
    slowest: tuple[SubtaskStateStats, ...]

    @classmethod
    def of(cls, subtasks: Sequence[SubtaskStateStats]) -> SubtaskStats | None:
        """A summary of these, of which the last to acknowledge comes last; None if there are none."""
        if not subtasks:
            return None
        return cls(
            Spread.of([subtask.snapshot_us for subtask in subtasks]),
            Spread.of([subtask.write_us for subtask in subtasks]),
            Spread.of([subtask.start_delay_ms for subtask in subtasks]),
            tuple(subtasks[: -_MOST_SLOWEST - 1 : -1]),
        )


@dataclass(frozen=True, slots=True)
class StateSize:
    """How large a checkpoint is.

    Args:
        state_bytes: bytes of state that it refers to.
        new_bytes: bytes that were written for it.
        rows: rows of all stores together.
    """

    state_bytes: int
    new_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """What a checkpoint took.

    Args:
        status: what became of it.
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        triggered_ms: when the batch began, in milliseconds since 1970 UTC.
        duration_ms: from then to the last ack, or until it was given up.
        completing_ms: from the last ack until it was durable; None in its own `_metadata`, and if it failed.
        acks: subtasks that have acknowledged.
        expected: subtasks that there are.
        checkpoint_id: its number; None if it failed.
        failures: how often what went wrong on the way, by `FailureReason`.
        detail: why it failed, for a person.
        size: how large it is; None if it failed.
        subtasks: what they took; None if none has acknowledged.
    """

    status: CheckpointStatus
    batch_id: int
    version: int
    triggered_ms: int
    duration_ms: int
    acks: int
    expected: int
    checkpoint_id: int | None = None
    completing_ms: int | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    detail: str | None = None
    size: StateSize | None = None
    subtasks: SubtaskStats | None = None


def stats_of_completed(
    pending: PendingCheckpoint, checkpoint_id: int, size: StateSize, subtasks: Sequence[SubtaskStateStats]
) -> CheckpointStats:
    """The statistics of a checkpoint as its own `_metadata` has them."""
    last_ack_ms = max((pending.arrived_ms[key] for key in pending.acks), default=pending.triggered_ms)
    stats = _stats(CheckpointStatus.COMPLETED, pending, last_ack_ms, subtasks)
    return replace(stats, checkpoint_id=checkpoint_id, size=size)


def stats_of_durable(stats: CheckpointStats, pending: PendingCheckpoint, now_ms: int) -> CheckpointStats:
    """What there is to add to the statistics of a completed checkpoint once it is durable."""
    last_ack_ms = stats.triggered_ms + stats.duration_ms
    return replace(stats, completing_ms=max(0, now_ms - last_ack_ms), failures=_by_name(pending))


def stats_of_failed(pending: PendingCheckpoint, abort: Abort, now_ms: int) -> CheckpointStats:
    """The statistics of a checkpoint that is given up."""
    return replace(_stats(CheckpointStatus.FAILED, pending, now_ms, stats_of_subtasks(pending)), detail=str(abort))


def _stats(
    status: CheckpointStatus, pending: PendingCheckpoint, until_ms: int, subtasks: Sequence[SubtaskStateStats]
) -> CheckpointStats:
    return CheckpointStats(
        status,
        pending.batch_id,
        pending.version,
        pending.triggered_ms,
        max(0, until_ms - pending.triggered_ms),
        len(pending.acks),
        pending.expected,
        failures=_by_name(pending),
        subtasks=SubtaskStats.of(subtasks),
    )


def _by_name(pending: PendingCheckpoint) -> dict[str, int]:
    return {reason.value: count for reason, count in pending.failures.items()}


class StatsHistory:
    """The statistics of the last checkpoints, oldest first.

    Args:
        limit: of how many.
        entries: what an earlier run left.
    """

    def __init__(self, limit: int, entries: Iterable[CheckpointStats] = ()) -> None:
        self._limit = limit
        self._entries = tuple(entries)[-limit:]

    @property
    def entries(self) -> tuple[CheckpointStats, ...]:
        """The statistics, oldest first."""
        return self._entries

    def with_entry(self, stats: CheckpointStats) -> tuple[CheckpointStats, ...]:
        """The entries as they would be with one more."""
        return (*self._entries, stats)[-self._limit :]

    def add(self, stats: CheckpointStats) -> None:
        """One more; the oldest may drop out."""
        self._entries = self.with_entry(stats)
