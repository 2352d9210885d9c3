"""The next compaction of a chain, beside those in progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.merges import digest_of
from spark_ckpt.compaction.policy import is_base_due
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import FULL_COMPACTION, NO_COMPACTION, CompactionRequest, InProgress, Kind

MERGE_TRIES = 3
"""Failures in sequence after which a subtask with a long chain is asked for a base instead of a merge."""

MAX_IN_PROGRESS = 4
"""Most bases and merges of one store that are in progress. Each is lighter than the one below it, and a store needs a
tier or more for the next."""


class Moment(NamedTuple):
    """What else than the chain decides.

    Args:
        partition: partition of the subtask.
        version: version of its last ack, or the one that it loads.
        arriving: bytes of the delta of the current batch; 0 if unknown or empty.
        failures: compactions of the subtask that failed in sequence.
        is_rewrite_due: True if a base would release enough of the files that its chain keeps.
    """

    partition: int
    version: int
    arriving: int = 0
    failures: int = 0
    is_rewrite_due: Callable[[], bool] = bool


def plan(chain: Chain, busy: Sequence[InProgress], moment: Moment, config: CheckpointConfig) -> CompactionRequest:
    """The compaction that a store should begin.

    A store works at several segments at a time: a base, and merges of deltas above the version of the base, each merge
    above the others. So their results fit into the chain in any order, and a base of minutes holds up no merge.

    Args:
        chain: chain of the subtask, which lacks the segments in progress.
        busy: segments in progress.
        moment: what else decides.
        config: limits.
    """
    if len(busy) >= MAX_IN_PROGRESS:
        return NO_COMPACTION
    merges = tiers.merges_deltas(chain, config)
    is_full_due = not any(one.is_base for one in busy) and _is_full_due(chain, moment, config, merges=merges)
    if is_full_due and not busy:
        return FULL_COMPACTION
    if not merges:
        return NO_COMPACTION
    free = free_deltas(chain, busy)
    run = tiers.due_run(
        [delta.size for delta in free],
        chain.base_bytes,
        moment.arriving,
        moment.partition,
        moment.version,
        config,
        chain.deltas - len(free),
        is_base_due=is_full_due,
    )
    if run is None:
        return NO_COMPACTION
    inputs = free[run.first : run.end]
    return CompactionRequest(Kind.MERGE, inputs, digest_of(inputs), heavy=tiers.is_heavy(inputs))


def _is_full_due(chain: Chain, moment: Moment, config: CheckpointConfig, *, merges: bool) -> bool:
    partition, version, arriving, failures, is_rewrite_due = moment
    delta_bytes, base_bytes = chain.size - chain.base_bytes + arriving, chain.base_bytes
    deltas = chain.deltas + bool(arriving)
    if merges:
        due = tiers.is_base_due(partition, chain.base_version, delta_bytes, base_bytes, arriving, config)
        # A base needs no earlier segment.
        due = due or (failures >= MERGE_TRIES and deltas > config.max_deltas)
    else:
        due = is_base_due(partition, version, deltas, delta_bytes, base_bytes, config)
    return due or is_rewrite_due()


def free_deltas(chain: Chain, busy: Sequence[InProgress]) -> tuple[SegmentRef, ...]:
    """Deltas above all segments in progress.

    Args:
        chain: chain of a subtask, which lacks these segments.
        busy: segments in progress.
    """
    last = max((one.version for one in busy), default=0)
    return tuple(delta for delta in chain.entries[chain.bases :] if delta.first_version > last)
