"""When a base is due, and where new state goes."""

from __future__ import annotations

from enum import Enum

from spark_ckpt.config import MAX_INLINE_BYTES, MIN_RETAINED, CheckpointConfig

SMALL_BYTES = 16 * 1024
"""Deltas of fewer bytes than this in all never make a base due by their weight: reading them costs less than a base."""

ASK_AGAIN_AFTER = 4
"""Versions after which a store is asked for a base once more, if none came: its executor may be gone."""

_GOLDEN = 0.6180339887498949


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

    Two reasons: the chain is long, or the deltas outweigh the base. Subtasks run in step, so both limits are spread:
    each subtask has its own slot among the batches between half the longest chain and the longest, and its own share of
    the weight between half of the set one and all of it.

    Args:
        partition: the subtask.
        version: the version it has just acknowledged.
        deltas: deltas since its base.
        delta_bytes: their bytes.
        base_bytes: bytes of its base.
        config: the limits.
    """
    if deltas >= config.max_deltas:
        return True
    slots = max(1, config.max_deltas // 2)
    if deltas >= slots and (version + partition) % slots == 0:
        return True
    spread = 0.5 + 0.5 * ((partition + 1) * _GOLDEN % 1.0)
    return delta_bytes > SMALL_BYTES and delta_bytes > config.max_delta_ratio * spread * base_bytes


def retained_checkpoints(config: CheckpointConfig) -> int:
    """How many checkpoints are kept."""
    return max(config.retained, MIN_RETAINED)
