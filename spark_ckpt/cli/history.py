"""The statistics of the last checkpoints of a location, and their JSON."""

from __future__ import annotations

from dataclasses import asdict

from spark_ckpt.cli.describe import JsonObject
from spark_ckpt.cli.errors import CheckpointNotFoundError, ForeignLocationError
from spark_ckpt.cli.location import find_checkpoint
from spark_ckpt.cli.summary import iso_time
from spark_ckpt.coordinator.statistics import CheckpointStats
from spark_ckpt.coordinator.stats_state import SPARK_HISTORY, history_of


def read_history(location: str) -> tuple[CheckpointStats, ...]:
    """The statistics that the newest checkpoint of a location carries, oldest first.

    Raises:
        ForeignLocationError: it carries none.
        CheckpointError: they are damaged.
        SparkCkptError: there is no checkpoint, or it cannot be read (see `find_checkpoint`).
    """
    found = find_checkpoint(location)
    entries = history_of(found.metadata)
    if entries is None:
        raise ForeignLocationError(found.path, f"it has no master state {SPARK_HISTORY} that this release can read")
    return entries


def select(location: str, entries: tuple[CheckpointStats, ...], checkpoint_id: int) -> CheckpointStats:
    """The statistics of one checkpoint.

    Raises:
        CheckpointNotFoundError: there are none of it.
    """
    by_id = {stats.checkpoint_id: stats for stats in entries if stats.checkpoint_id is not None}
    if checkpoint_id not in by_id:
        raise CheckpointNotFoundError(location, checkpoint_id, sorted(by_id))
    return by_id[checkpoint_id]


def describe_stats(stats: CheckpointStats) -> JsonObject:
    """All fields under their names, the status as text, and the time of the trigger as ISO 8601 too."""
    described: JsonObject = asdict(stats)
    described["status"] = stats.status.value
    described["triggered"] = iso_time(stats.triggered_ms)
    if stats.subtasks is not None:
        described["subtasks"] = {
            **asdict(stats.subtasks),
            "slowest": [{**asdict(slow), "subtask": slow.subtask._asdict()} for slow in stats.subtasks.slowest],
        }
    return described
