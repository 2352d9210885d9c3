"""Selection of the completed checkpoints that a newer one subsumes."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.completed.records import CheckpointRecord


def select_subsumed(checkpoints: Sequence[CheckpointRecord], retained: int, age_ms: int = 0) -> list[CheckpointRecord]:
    """Selects the checkpoints to drop so that `retained` remain, and younger ones (Flink:
    `CheckpointSubsumeHelper.subsume`).

    Keeps the newest checkpoint, and the newest one of the previous version: Spark writes `commits/N` after checkpoint
    N + 1 is complete, so a restart may ask for that version. Drops first the checkpoints of a version that a later run
    repeated, since nothing asks for them any more, then the oldest.

    Args:
        checkpoints: all checkpoints, ascending by id.
        retained: number of checkpoints to keep, at least 1.
        age_ms: milliseconds before the newest checkpoint within which none is dropped, unless a later run has repeated
            its version.

    Returns:
        The checkpoints to drop, in the order in which to drop them.
    """
    surplus = len(checkpoints) - retained
    if surplus <= 0:
        return []
    newest_of = {checkpoint.version: checkpoint.id for checkpoint in checkpoints}
    newest = checkpoints[-1]
    needed = {newest.id, newest_of.get(newest.version - 1)}
    droppable = [checkpoint for checkpoint in checkpoints if checkpoint.id not in needed]
    droppable.sort(key=lambda checkpoint: (newest_of[checkpoint.version] == checkpoint.id, checkpoint.id))
    oldest_ms = newest.timestamp_ms - age_ms
    return [
        checkpoint
        for checkpoint in droppable[:surplus]
        if age_ms <= 0 or checkpoint.timestamp_ms < oldest_ms or newest_of[checkpoint.version] != checkpoint.id
    ]
