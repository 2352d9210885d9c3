"""Recent checkpoint durations, sizes and failures (Flink: `CheckpointStatsTracker`, `CheckpointStatsHistory`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from spark_ckpt.format.keys import SubtaskKey

_MOST_SLOWEST = 3


class CheckpointStatus(Enum):
    """The status of a checkpoint (Flink: `CheckpointStatsStatus`)."""

    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a number over subtasks: minimum, mean (rounded) and maximum."""

    least: int
    mean: int
    most: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """The spread of some values, of which there must be one."""
        return cls(min(values), round(sum(values) / len(values)), max(values))


class SubtaskStateStats(NamedTuple):
    """Statistics of one subtask (Flink: `SubtaskStateStats`).

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


@dataclass(frozen=True, slots=True)
class SubtaskStats:
    """Distributions over the subtasks that have acknowledged.

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
    """The size of a checkpoint.

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
    """Statistics of a checkpoint.

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
