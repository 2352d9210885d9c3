"""Recent checkpoint durations, sizes and failures (Flink: `CheckpointStatsTracker`, `CheckpointStatsHistory`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from spark_ckpt.format.keys import SubtaskKey

_MAX_SLOWEST = 3


class CheckpointStatus(Enum):
    """Status of a checkpoint (Flink: `CheckpointStatsStatus`)."""

    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Spread:
    """Distribution of a figure over subtasks: minimum, rounded mean, maximum."""

    least: int
    mean: int
    most: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread:
        """Spread of a non-empty sequence of values."""
        return cls(min(values), round(sum(values) / len(values)), max(values))


class SubtaskStateStats(NamedTuple):
    """Statistics of one subtask (Flink: `SubtaskStateStats`).

    Args:
        subtask: key of the subtask.
        executor: executor that ran its task.
        snapshot_us: microseconds for which the snapshot blocked the task (Flink: synchronous part).
        write_us: microseconds to write the snapshot (Flink: asynchronous part).
        start_delay_ms: milliseconds from the trigger to the start of the snapshot, mostly the processing of the batch.
        delta_bytes: bytes of its changes.
        rows: number of its rows.
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
    """Distributions over the acknowledged subtasks.

    Args:
        snapshot_us: spread of `SubtaskStateStats.snapshot_us`.
        write_us: spread of `SubtaskStateStats.write_us`.
        start_delay_ms: spread of `SubtaskStateStats.start_delay_ms`.
        slowest: subtasks with the last acks, latest first.
    """

    snapshot_us: Spread
    write_us: Spread
    start_delay_ms: Spread
    slowest: tuple[SubtaskStateStats, ...]

    @classmethod
    def of(cls, subtasks: Sequence[SubtaskStateStats]) -> SubtaskStats | None:
        """Summary of subtasks in the order of their acks; None for no subtasks."""
        if not subtasks:
            return None
        return cls(
            Spread.of([subtask.snapshot_us for subtask in subtasks]),
            Spread.of([subtask.write_us for subtask in subtasks]),
            Spread.of([subtask.start_delay_ms for subtask in subtasks]),
            tuple(subtasks[: -_MAX_SLOWEST - 1 : -1]),
        )


@dataclass(frozen=True, slots=True)
class StateSize:
    """Size of a checkpoint.

    Args:
        state_bytes: bytes of all state that the checkpoint refers to.
        new_bytes: bytes written for this checkpoint.
        rows: total rows of all stores.
    """

    state_bytes: int
    new_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """Statistics of a checkpoint.

    Args:
        status: final status.
        batch_id: Spark's micro-batch.
        version: version of the state that the batch leaves.
        triggered_ms: start of the batch, in milliseconds since 1970 UTC.
        duration_ms: milliseconds from `triggered_ms` to the last ack, or to the abort.
        completing_ms: milliseconds from the last ack until the checkpoint was durable; None in its own `_metadata`, and
            after a failure.
        acks: number of acknowledged subtasks.
        expected: number of all subtasks.
        checkpoint_id: checkpoint id; None after a failure.
        failures: counts of failures and retries by `FailureReason`.
        detail: human-readable cause of the failure.
        size: size of the checkpoint; None after a failure.
        subtasks: summary of the acknowledged subtasks; None without acks.
        operation: command whose checkpoint it is, such as `evolve`; None for that of a batch.
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
    operation: str | None = None


class StatsHistory:
    """Statistics of the last checkpoints, oldest first.

    Args:
        limit: maximum number of checkpoints.
        entries: statistics from an earlier run.
    """

    def __init__(self, limit: int, entries: Iterable[CheckpointStats] = ()) -> None:
        self._limit = limit
        self._entries = tuple(entries)[-limit:]

    @property
    def entries(self) -> tuple[CheckpointStats, ...]:
        """Statistics, oldest first."""
        return self._entries

    def with_entry(self, stats: CheckpointStats) -> tuple[CheckpointStats, ...]:
        """Copy of the entries with `stats` appended, within the limit."""
        return (*self._entries, stats)[-self._limit :]

    def add(self, stats: CheckpointStats) -> None:
        """Append statistics, and drop the oldest above the limit."""
        self._entries = self.with_entry(stats)
