"""Statistics of the checkpoints in flight (Flink: `CheckpointStatsTracker`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_ckpt.checkpoint.statistics import (
    CheckpointStats,
    CheckpointStatus,
    StateSize,
    SubtaskStateStats,
    SubtaskStats,
)
from spark_ckpt.coordinator.failures import Abort
from spark_ckpt.coordinator.pending import PendingCheckpoint


def stats_of_subtasks(pending: PendingCheckpoint) -> list[SubtaskStateStats]:
    """Statistics of the acknowledged subtasks, in order of their acks."""
    return [
        SubtaskStateStats(
            key,
            ack.task.executor,
            snapshot := ack.timings_us.get("snapshot", 0),
            write := ack.timings_us.get("write", 0),
            # Clocks may be set back, and executors and driver round differently.
            max(0, pending.arrived_ms[key] - pending.triggered_ms - (snapshot + write) // 1000),
            ack.delta.size,
            ack.rows,
        )
        for key, ack in sorted(pending.acks.items(), key=lambda item: pending.arrived_ms[item[0]])
    ]


def stats_of_completed(
    pending: PendingCheckpoint, checkpoint_id: int, size: StateSize, subtasks: Sequence[SubtaskStateStats]
) -> CheckpointStats:
    """Statistics of a checkpoint for its own `_metadata`."""
    last_ack_ms = max((pending.arrived_ms[key] for key in pending.acks), default=pending.triggered_ms)
    stats = _stats(CheckpointStatus.COMPLETED, pending, last_ack_ms, subtasks)
    return replace(stats, checkpoint_id=checkpoint_id, size=size)


def stats_of_durable(stats: CheckpointStats, pending: PendingCheckpoint, now_ms: int) -> CheckpointStats:
    """Statistics of a completed checkpoint, with the fields known only once it is durable."""
    last_ack_ms = stats.triggered_ms + stats.duration_ms
    return replace(stats, completing_ms=max(0, now_ms - last_ack_ms), failures=_by_name(pending))


def stats_of_failed(pending: PendingCheckpoint, abort: Abort, now_ms: int) -> CheckpointStats:
    """Statistics of an aborted checkpoint."""
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
