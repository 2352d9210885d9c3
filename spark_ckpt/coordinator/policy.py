"""When a base is due, and where new state goes."""

from __future__ import annotations

from enum import Enum

from spark_ckpt.config import MAX_INLINE_BYTES, MIN_RETAINED, CheckpointConfig

SMALL_BYTES = 16 * 1024
"""A base counts as if it had at least this many bytes: reading a few small deltas costs less than writing a base."""

ASK_AGAIN_AFTER = 4
"""Versions after which a store is asked for a base once more, if none came: its executor may be gone."""


class Placement(Enum):
    """Where the new state of a checkpoint goes that came with the acks."""

    INLINE = "inline"
    FILE = "file"


def place(new_bytes: int, kept_inline_bytes: int, config: CheckpointConfig) -> Placement:
    """Where new state goes.

    Args:
        new_bytes: bytes that came with the acks of the checkpoint.
        kept_inline_bytes: bytes inside `_metadata` that earlier checkpoints left and this one still refers to.
        config: the threshold.
    """
    if new_bytes <= config.inline_threshold and new_bytes + kept_inline_bytes <= MAX_INLINE_BYTES:
        return Placement.INLINE
    return Placement.FILE


def is_base_due(
    partition: int, version: int, deltas: int, delta_bytes: int, base_bytes: int, config: CheckpointConfig
) -> bool:
    """Whether a subtask should make a new base.

    Two reasons: the chain is long, or the deltas outweigh the base. Subtasks run in step, so each has a slot of its own
    among the batches of a cycle, and makes its base there once it has come half the way to a limit. Otherwise all of
    them would reach their limits in one batch.

    Args:
        partition: the subtask.
        version: the version it has just acknowledged.
        deltas: deltas since its base.
        delta_bytes: their bytes.
        base_bytes: bytes of its base.
        config: the limits.
    """
    if not deltas:
        return False
    heaviest = max(SMALL_BYTES, config.max_delta_ratio * base_bytes)
    if deltas >= config.max_deltas or delta_bytes > heaviest:
        return True
    half_way = max(1, config.max_deltas // 2)
    cycle = max(1, min(half_way, round(heaviest * deltas / max(1, delta_bytes))))
    return (version + partition) % cycle == 0 and (deltas >= half_way or 2 * delta_bytes > heaviest)


def retained_checkpoints(config: CheckpointConfig) -> int:
    """How many checkpoints are kept."""
    return max(config.retained, MIN_RETAINED)
