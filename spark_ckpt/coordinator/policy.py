"""When a base is due, where new state goes, and what is kept."""

from __future__ import annotations

from enum import Enum

from spark_ckpt.completed import JobStatus
from spark_ckpt.config import MAX_INLINE_BYTES, MIN_RETAINED, CheckpointConfig
from spark_ckpt.coordinator.chains import Chain
from spark_ckpt.coordinator.messages import Ack, SubtaskKey

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


class BaseRequests:
    """Asks subtasks for bases. One that was asked is left in peace for a few batches.

    Args:
        config: the limits.
    """

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._asked: dict[SubtaskKey, int] = {}

    def is_due(self, ack: Ack, chain: Chain | None) -> bool:
        """Whether the subtask of an ack should bring a base soon.

        Args:
            ack: one that counts.
            chain: the state that the batch started from; None if it had none.
        """
        if ack.base is not None:
            self._asked.pop(ack.subtask, None)
            return False
        if chain is None:
            return False
        due = is_base_due(
            ack.subtask.partition,
            ack.version,
            chain.deltas + bool(ack.delta.size),
            chain.size - chain.base_bytes + ack.delta.size,
            chain.base_bytes,
            self._config,
        )
        if not due or ack.version < self._asked.get(ack.subtask, -ASK_AGAIN_AFTER) + ASK_AGAIN_AFTER:
            return False
        self._asked[ack.subtask] = ack.version
        return True


def retained_checkpoints(config: CheckpointConfig) -> int:
    """How many checkpoints are kept."""
    return max(config.retained, MIN_RETAINED)


def discards_checkpoints(status: JobStatus, config: CheckpointConfig) -> bool:
    """Whether a query that ends in this way leaves no checkpoints (Flink: `ExternalizedCheckpointRetention`)."""
    if config.cleanup == "deleteOnEnd":
        return status.is_terminal
    return config.cleanup == "deleteOnCancellation" and status is JobStatus.CANCELLED
