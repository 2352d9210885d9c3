"""Tiers: which neighbouring deltas of a chain are merged, so that the bytes written follow the changes.

Without merges, all of a state is written again whenever its chain gets long: per batch a fixed share of the state. With
them, a chain is geometric. Its deltas belong to tiers, each `fan_out` times as heavy as the next and the heaviest that
share of the base. Deltas are merged once they fill a tier, so a change is rewritten once per tier and once with the
next base, which is due when the deltas weigh as much as the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from spark_ckpt.checkpoint.chains import Chain, Run
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.segment_ref import SegmentRef

MIN_BASE = 128 * 1024
"""Bytes of a base from which deltas are merged. A smaller state is cheap to write as a whole, and may lie in
`_metadata`."""

MIN_MERGED = 2
"""Least number of deltas in a merge."""

HEAVY_BYTES = 16 << 20
"""Bytes of deltas from which their merge waits for others of the executor that are as heavy, beside lighter ones."""

_MIN_GROWTH = 2.5
"""Least ratio of a tier to the deltas of one batch: below this, a merge saves too few segments for its bytes."""

_FULL = 0.88
"""Share of a tier from which it is full. Deltas come in steps, so on average merged ones have the weight of the
tier."""

_HELD = 0.6
"""Share of a tier from which a delta belongs to it, and is not merged into it again. A merged delta is lighter than
its parts, because they share keys."""

_BASE_EARLY = 2
"""Batches by which a base is due early: its writing takes about as long."""

_MIN_SAVED = 3
"""Least number of segments that a merge saves in a chain that has become too long."""

_BASE_SPREAD = 0.2
"""Share of `chain.maxDeltaRatio` by which bases of different subtasks are due at different times."""

_BOUND_FACTOR = 8
"""Ratio of the longest chain of a state whose deltas are merged to that of others."""

_GOLDEN = 0.6180339887498949
_PLASTIC = 0.7548776662466927


def fan_out(config: CheckpointConfig) -> int:
    """Ratio of neighbouring tiers. A larger one writes less, and makes chains longer."""
    return 2 + config.max_deltas // 8


def chain_bound(bound: int) -> int:
    """Maximum number of deltas in a chain whose deltas are merged. A base of a large state may take a hundred batches.
    One merge then shortens the chain, while another base would take as long again.

    Args:
        bound: maximum number of deltas in other chains.
    """
    return _BOUND_FACTOR * bound


def is_heavy(deltas: Iterable[SegmentRef]) -> bool:
    """True if the merge of these deltas takes so long that lighter ones should not wait for it."""
    return sum(delta.size for delta in deltas) >= HEAVY_BYTES


def merges_deltas(chain: Chain, config: CheckpointConfig) -> bool:
    """True if deltas of this chain are merged. If not, only bases shorten it.

    Deltas that record every write stay as they are: their change feed has each write of each batch. So do those of a
    subtask that has segments of several ones after a rescale, until it has a base of its own.

    Args:
        chain: chain of a subtask.
        config: limits.
    """
    return (
        config.change_feed != "writes"
        and chain.base_bytes >= MIN_BASE
        and chain.bases == 1
        and not any(entry.filters for entry in chain.entries)
        and all(later.first_version > entry.version for entry, later in pairwise(chain.entries))
    )


def is_base_due(
    partition: int, base_version: int, delta_bytes: int, base_bytes: int, arriving: int, config: CheckpointConfig
) -> bool:
    """True if a subtask whose deltas are merged should write a new base.

    Args:
        partition: partition of the subtask.
        base_version: version of its base.
        delta_bytes: bytes of the deltas since.
        base_bytes: bytes of the base.
        arriving: bytes of the delta of the current batch; 0 if unknown or empty.
        config: limits.
    """
    limit = config.max_delta_ratio * base_bytes * (1 - _BASE_SPREAD * _spread(partition, base_version))
    return delta_bytes + _BASE_EARLY * arriving > limit


def due_run(
    sizes: Sequence[int],
    base_bytes: int,
    arriving: int,
    partition: int,
    version: int,
    config: CheckpointConfig,
    taken: int = 0,
    *,
    is_base_due: bool = False,
) -> Run | None:
    """The deltas that a subtask should merge now, by index in `sizes`; None if it should not.

    Subtasks grow in step, and would merge in the same batches. So each has its own slot in a cycle, whose length is the
    number of batches that fill the lightest tier.

    Args:
        sizes: bytes of the deltas since the base that are free to be merged, oldest first, without the one of the
            current batch.
        base_bytes: bytes of the base.
        arriving: bytes of the delta of the current batch; 0 if unknown or empty.
        partition: partition of the subtask.
        version: version of its last ack.
        config: limits.
        taken: number of earlier deltas, which are not free: a base or a merge in progress has them, or is above them.
        is_base_due: True if a base waits for merges in progress; then only a chain that is too long is merged.
    """
    if len(sizes) < MIN_MERGED:
        return None
    per_batch = arriving or sizes[-1]
    tiers = _tiers(base_bytes * config.max_delta_ratio, per_batch, fan_out(config))
    if tiers and not is_base_due:
        cycle = max(1, round(tiers[-1] / max(1, per_batch)))
        if (version + partition) % cycle == 0:
            for tier in tiers:
                run = _open_run(sizes, _HELD * tier)
                if run.end - run.first >= MIN_MERGED and sum(sizes[run.first :]) >= _FULL * tier:
                    return run
    excess = len(sizes) + taken - config.max_deltas
    # What is in progress may end soon, and leaves a better choice than merges of a few deltas each.
    if excess <= 0 or (taken and len(sizes) <= _MIN_SAVED):
        return None
    return _cheapest_run(sizes, excess)


def _tiers(heaviest: float, per_batch: int, ratio: int) -> list[float]:
    """Bytes of the tiers between the base and the deltas of single batches, heaviest first."""
    tiers = []
    tier = heaviest / ratio
    while tier >= _MIN_GROWTH * max(1, per_batch):
        tiers.append(tier)
        tier /= ratio
    return tiers


def _open_run(sizes: Sequence[int], limit: float) -> Run:
    """The newest deltas, each lighter than the limit."""
    first = len(sizes)
    while first > 0 and sizes[first - 1] < limit:
        first -= 1
    return Run(first, len(sizes))


def _cheapest_run(sizes: Sequence[int], excess: int) -> Run:
    """The newest deltas whose merge writes the fewest bytes per segment that it saves."""
    latest = max(0, len(sizes) - 1 - excess - _MIN_SAVED)
    costs = [sum(sizes[first:]) / (len(sizes) - 1 - first) for first in range(latest + 1)]
    return Run(costs.index(min(costs)), len(sizes))


def _spread(partition: int, base_version: int) -> float:
    """A number from 0 to 1 that spreads partitions, and differs from base to base."""
    return ((partition + 1) * _GOLDEN + base_version * _PLASTIC) % 1.0
