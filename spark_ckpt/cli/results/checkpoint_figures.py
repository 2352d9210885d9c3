"""Figures of a checkpoint, as a row of a table."""

from __future__ import annotations

from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.figures import human_size, iso_time

_NONE = "-"


def checkpoint_figures(stats: CheckpointStats) -> tuple[str, ...]:
    """Id, batch, status, trigger time, duration, time until durable, acks, retries, size, new bytes, rows."""
    size = stats.size
    return (
        _NONE if stats.checkpoint_id is None else str(stats.checkpoint_id),
        str(stats.batch_id),
        stats.status.value,
        iso_time(stats.triggered_ms),
        f"{stats.duration_ms:,} ms",
        _NONE if stats.completing_ms is None else f"{stats.completing_ms:,} ms",
        f"{stats.acks:,}/{stats.expected:,}",
        f"{sum(stats.failures.values()):,}",
        _NONE if size is None else human_size(size.state_bytes),
        _NONE if size is None else human_size(size.new_bytes),
        _NONE if size is None else f"{size.rows:,}",
    )
