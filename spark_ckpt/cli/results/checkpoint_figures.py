"""Figures of a checkpoint, as columns of a table."""

from __future__ import annotations

from collections.abc import Callable

from spark_ckpt.checkpoint.statistics import CheckpointStats, StateSize
from spark_ckpt.cli.terminal import Column, number_column, text_column
from spark_ckpt.figures import human_size, iso_time

_NONE = "-"


def _of_size(text: Callable[[StateSize], str]) -> Callable[[CheckpointStats], str]:
    return lambda stats: _NONE if stats.size is None else text(stats.size)


def status_of(stats: CheckpointStats) -> str:
    """Status of a checkpoint, with the command that made it."""
    return stats.status.value if stats.operation is None else f"{stats.status.value} ({stats.operation})"


CHECKPOINT_FIGURES: tuple[Column, ...] = (
    number_column("ID", lambda stats: _NONE if stats.checkpoint_id is None else str(stats.checkpoint_id)),
    number_column("BATCH", lambda stats: str(stats.batch_id)),
    text_column("STATUS", status_of),
    text_column("TRIGGERED", lambda stats: iso_time(stats.triggered_ms)),
    number_column("DURATION", lambda stats: f"{stats.duration_ms:,} ms"),
    number_column("COMPLETING", lambda stats: _NONE if stats.completing_ms is None else f"{stats.completing_ms:,} ms"),
    number_column("ACKS", lambda stats: f"{stats.acks:,}/{stats.expected:,}"),
    number_column("RETRIES", lambda stats: f"{sum(stats.failures.values()):,}"),
    number_column("SIZE", _of_size(lambda size: human_size(size.state_bytes))),
    number_column("NEW", _of_size(lambda size: human_size(size.new_bytes))),
    number_column("STATE ROWS", _of_size(lambda size: f"{size.rows:,}")),
)
"""Columns whose records are `CheckpointStats`."""
