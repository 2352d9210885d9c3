"""Policies: placement of new state, its shipping, retention."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spark_ckpt.completed import JobStatus
from spark_ckpt.config import MAX_INLINE_BYTES, MIN_RETAINED, CheckpointConfig
from spark_ckpt.format.integers import Natural

SHARED_FILE_WAIT_MS = 50
"""Milliseconds that a task waits for others of its executor to share a file: a fraction of one request to an object
store."""

SHARED_FILE_BYTES = 8 << 20
"""Bytes from which a file does not wait for further tasks: above this size, the transfer outweighs the request."""


@dataclass(frozen=True, slots=True)
class ShippingLimits:
    """Limits within which stores ship their segments: with the ack, in a file of several tasks, or in a file alone.

    Args:
        ack_threshold: bytes of one segment up to which it travels with an ack.
        shared_file_wait_ms: milliseconds that a task waits for others of its executor to share a file.
        shared_file_bytes: bytes from which a file waits for no further task; a segment of this size has its own file.
    """

    ack_threshold: Natural
    shared_file_wait_ms: Natural
    shared_file_bytes: Natural


class Placement(Enum):
    """Placement of state from acks."""

    INLINE = "inline"
    FILE = "file"


def place(new_bytes: int, kept_inline_bytes: int, config: CheckpointConfig) -> Placement:
    """Placement of new state.

    Args:
        new_bytes: bytes that came with the acks of the checkpoint.
        kept_inline_bytes: bytes of earlier checkpoints inside `_metadata` that this one still refers to.
        config: threshold.
    """
    if new_bytes <= config.inline_threshold and new_bytes + kept_inline_bytes <= MAX_INLINE_BYTES:
        return Placement.INLINE
    return Placement.FILE


def ack_threshold(acks: int, config: CheckpointConfig) -> int:
    """Size of the largest segment that travels with an ack, in bytes.

    Each store of each subtask may bring a delta and a base. All of them together fit in `ackMemory`.

    Args:
        acks: number of acks of a batch.
        config: limits.
    """
    return min(config.ack_threshold, config.ack_memory // (2 * max(1, acks)))


def shipping_limits(acks: int, config: CheckpointConfig) -> ShippingLimits:
    """Limits within which the stores of a batch ship their segments.

    Args:
        acks: number of acks of a batch.
        config: limits of the query.
    """
    return ShippingLimits(ack_threshold(acks, config), SHARED_FILE_WAIT_MS, SHARED_FILE_BYTES)


def retained_checkpoints(config: CheckpointConfig) -> int:
    """Number of retained checkpoints."""
    return max(config.retained, MIN_RETAINED)


def retained_age_ms(config: CheckpointConfig) -> int:
    """Age up to which checkpoints are retained whatever their number, in milliseconds; 0 for none."""
    return round((config.retained_age or 0.0) * 1000)


def discards_checkpoints(status: JobStatus, config: CheckpointConfig) -> bool:
    """True if a query with this final status retains no checkpoints (Flink: `ExternalizedCheckpointRetention`)."""
    if config.cleanup == "deleteOnEnd":
        return status.is_terminal
    return config.cleanup == "deleteOnCancellation" and status is JobStatus.CANCELLED
