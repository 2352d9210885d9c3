"""Policies: due bases, placement of new state, retention."""

from __future__ import annotations

from enum import Enum

from spark_ckpt.completed import JobStatus
from spark_ckpt.config import MAX_INLINE_BYTES, MIN_RETAINED, CheckpointConfig

SMALL_BYTES = 16 * 1024
"""A base counts as if it had at least this many bytes: reading a few small deltas costs less than writing a base."""

ASK_AGAIN_AFTER = 4
"""Versions after which a store is asked for a base once more, if none came: its executor may be gone."""


class Placement(Enum):
    """Placement of state that came with the acks."""

    INLINE = "inline"
    FILE = "file"


def place(new_bytes: int, kept_inline_bytes: int, config: CheckpointConfig) -> Placement:
    """Placement of new state.

    Args:
        new_bytes: bytes that came with the acks of the checkpoint.
        kept_inline_bytes: bytes inside `_metadata` that earlier checkpoints left and this one still refers to.
        config: the threshold.
    """
    if new_bytes <= config.inline_threshold and new_bytes + kept_inline_bytes <= MAX_INLINE_BYTES:
        return Placement.INLINE
    return Placement.FILE


def ack_threshold(acks: int, config: CheckpointConfig) -> int:
    """Bytes of one segment up to which it travels with an ack.

    Every store of every subtask may bring a delta and a base, and all of a batch are to stay within `ackMemory`.

    Args:
        acks: number of acks of a batch.
        config: the limits.
    """
    return min(config.ack_threshold, config.ack_memory // (2 * max(1, acks)))


def is_base_due(
    partition: int, version: int, deltas: int, delta_bytes: int, base_bytes: int, config: CheckpointConfig
) -> bool:
    """True if a subtask should write a new base.

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


def is_rewrite_due(wasted: float, size: int) -> bool:
    """True if a subtask should write a new base to release files that are mostly unused.

    A small segment of a partition that is idle keeps a file alive that others have filled, and have left since. A new
    base costs as many bytes as the chain has, so it is due when it sets more free than that. So the files of a
    checkpoint have at most twice the bytes of its state, and `SMALL_BYTES` for each chain.

    Args:
        wasted: the chain's share of the bytes of its files that no chain uses.
        size: bytes of the chain.
    """
    return wasted > max(SMALL_BYTES, size)


def rewrite_cycle(config: CheckpointConfig) -> int:
    """Batches in which each subtask has one slot for a base that sets files free, so that not all make theirs at once.

    Args:
        config: the limits.
    """
    return max(2 * ASK_AGAIN_AFTER, config.max_deltas)


def chain_bound(config: CheckpointConfig) -> int:
    """Most deltas of a chain: a subtask with so many must bring a base with its next ack.

    Twice `chain.maxDeltas`, which leaves a slow base as long again as the chain took to become due. Short chains get
    a few deltas more, because a base is one version old when it arrives, and may have to be asked for twice.

    Args:
        config: the limits.
    """
    return max(2 * config.max_deltas, config.max_deltas + ASK_AGAIN_AFTER)


def retained_checkpoints(config: CheckpointConfig) -> int:
    """Number of retained checkpoints."""
    return max(config.retained, MIN_RETAINED)


def discards_checkpoints(status: JobStatus, config: CheckpointConfig) -> bool:
    """True if a query that ends in this way leaves no checkpoints (Flink: `ExternalizedCheckpointRetention`)."""
    if config.cleanup == "deleteOnEnd":
        return status.is_terminal
    return config.cleanup == "deleteOnCancellation" and status is JobStatus.CANCELLED
