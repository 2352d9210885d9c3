"""Limits of chains: due bases of those without merges, bases that release files, longest chains."""

from __future__ import annotations

from spark_ckpt.checkpoint.packing import MAX_BYTES, SEGMENT_BYTES
from spark_ckpt.config import CheckpointConfig

SMALL_BYTES = 16 * 1024
"""Lower bound in bytes for the size of a base: reading a few small deltas costs less than writing a base."""

ASK_AGAIN_AFTER = 4
"""Versions after which an unanswered base request is repeated: the executor may be gone."""


_SHARE_OF_TABLES = 0.75
"""Share of the limit of `_metadata` from which chains must get shorter. The rest is for batches that come before the
bases."""


def is_base_due(
    partition: int, version: int, deltas: int, delta_bytes: int, base_bytes: int, config: CheckpointConfig
) -> bool:
    """True if a subtask should write a new base.

    A base is due when the chain is long or the deltas outweigh the base. Subtasks grow in step and would reach these
    limits in the same batch. So each has its own slot in a cycle of batches, and writes its base there once it is
    halfway to a limit.

    Args:
        partition: partition of the subtask.
        version: version of its last ack.
        deltas: number of deltas since its base.
        delta_bytes: bytes of these deltas.
        base_bytes: bytes of its base.
        config: limits.
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
    """True if a subtask should write a new base to release mostly unused files.

    A small segment of an idle partition keeps a whole file alive, even if all other partitions have moved on. A new
    base costs as many bytes as the chain has, so it is due when it releases more than that. This bounds the files of a
    checkpoint to twice the bytes of its state, plus `SMALL_BYTES` per chain.

    Args:
        wasted: the chain's share of the unused bytes of its files.
        size: bytes of the chain.
    """
    return wasted > max(SMALL_BYTES, size)


def rewrite_cycle(config: CheckpointConfig) -> int:
    """Batches per cycle in which each subtask has one slot for a base that releases files. Slots spread these bases.

    Args:
        config: limits.
    """
    return max(2 * ASK_AGAIN_AFTER, config.max_deltas)


def chain_bound(config: CheckpointConfig) -> int:
    """Maximum number of deltas in a chain. At this bound, the next ack must bring a base.

    The bound is twice `chain.maxDeltas`, so a slow base has as much time as the chain took to become due. Short chains
    get a few more deltas, because a base is one version old on arrival and may need a second request.

    Args:
        config: limits.
    """
    return max(2 * config.max_deltas, config.max_deltas + ASK_AGAIN_AFTER)


def most_deltas(subtasks: int) -> int:
    """Maximum number of deltas in the chain of each subtask for which the segments of all of them fit into `_metadata`.
    It matters from some ten thousand subtasks on, and is at least one.

    Args:
        subtasks: number of subtasks, over all stores of all operators.
    """
    return max(1, int(_SHARE_OF_TABLES * MAX_BYTES) // (SEGMENT_BYTES * max(1, subtasks)) - 1)
