"""The statistics of the last checkpoints of a location, and their JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from spark_ckpt.cli.describe import JsonObject
from spark_ckpt.cli.summary import iso_time
from spark_ckpt.coordinator.statistics import CheckpointStats, SubtaskStateStats
from spark_ckpt.coordinator.stats_state import SPARK_HISTORY, SPARK_SUBTASKS, history_of, subtasks_of
from spark_ckpt.errors import CheckpointNotFoundError
from spark_ckpt.locations.errors import ForeignLocationError
from spark_ckpt.locations.location import find_checkpoint


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


def read_subtasks(location: str, checkpoint_id: int) -> tuple[SubtaskStateStats, ...]:
    """What the subtasks of a checkpoint took, in the order in which they acknowledged.

    Raises:
        CheckpointNotFoundError: it is not retained any more, or never was there.
        ForeignLocationError: its `_metadata` does not say.
        CheckpointError: what it says is damaged.
        SparkCkptError: it cannot be read (see `find_checkpoint`).
    """
    found = find_checkpoint(location, checkpoint_id)
    subtasks = subtasks_of(found.metadata)
    if subtasks is None:
        raise ForeignLocationError(found.path, f"it has no master state {SPARK_SUBTASKS} that this release can read")
    return subtasks


def describe_stats(stats: CheckpointStats, by_subtask: Sequence[SubtaskStateStats] | None = None) -> JsonObject:
    """All fields under their names, the status as text, the time of the trigger as ISO 8601 too, and the subtasks if
    they were asked for."""
    described: JsonObject = asdict(stats)
    described["status"] = stats.status.value
    described["triggered"] = iso_time(stats.triggered_ms)
    if stats.subtasks is not None:
        described["subtasks"] = {
            **asdict(stats.subtasks),
            "slowest": [_describe_subtask(slow) for slow in stats.subtasks.slowest],
        }
    if by_subtask is not None:
        described["by_subtask"] = [_describe_subtask(subtask) for subtask in by_subtask]
    return described


def _describe_subtask(stats: SubtaskStateStats) -> JsonObject:
    return {**stats._asdict(), "subtask": stats.subtask._asdict()}
