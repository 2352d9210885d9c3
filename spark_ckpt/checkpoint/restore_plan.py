"""Policy of a restore: the state at once, or row by row as a batch wants it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.segment_flags import COMPRESSED, ORDERED

RestoreMode: TypeAlias = Literal["by_segment", "by_key_group", "by_row"]
"""How a store loads its state.

- `by_segment`: everything before the batch, one segment after another.
- `by_key_group`: everything before the batch, one key group after another. The number of rows must be that of the
  reply.
- `by_row`: rows stay in their segments until the batch wants them.
"""

MIN_LAZY_ROWS: Final = 500_000
"""Fewest rows of a store that may stay in its segments. Fewer are loaded in the time that a batch with many keys would
lose by lookups."""

MAX_LOOKUP_SHARE: Final = 8
"""Parts of a load of everything of which lookups may cost one, until the rest is loaded too: what a batch that wants
everything spends on lookups in vain."""

MAX_DELTA_SHARE: Final = 1
"""Parts of the base of which the deltas may have one, for lookups in the base to pay: all deltas are loaded before the
first one. A base is due at about this size, so heavier chains are those of a storage that is too slow for bases."""

NEWEST_DELTAS: Final = 4
"""Number of newest deltas that tell how much a batch changes."""

MAX_BATCH_SHARE: Final = 256
"""Parts of the base of which each of these batches may have changed one. After heavier ones, the next batch is likely
to want many rows, too."""

COMPRESSED_WEIGHT: Final = 3
"""Bytes of such a batch that mean as many rows as one byte of a compressed base: small blocks compress less."""

ROW_COST: Final = 25
"""Cost of a lookup, which reads a file twice, in rows of a load of everything."""

COMPRESSED_ROW_COST: Final = 50
"""The same in a compressed base, of which it decompresses about three chunks."""

CHECKED_ROWS: Final = 32
"""Rows of a key group that are read and checked, before its first lookup, in the time of one that is loaded."""

REST_AFTER_MS: Final = 1000
"""Milliseconds from the end of the first batch until the rest is loaded in the background. A run of one batch ends
meanwhile, and a query without a pause loads the rest with its next batch."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """How a store loads the state of a version. All but `mode` only count `by_row`; costs are in rows of a load of
    everything.

    A store may load more than the plan asks for, never less: one with column families or lists loads by segment.

    Args:
        mode: what is loaded when.
        budget: cost of lookups above which the rest is loaded; 0 if the first access loads everything.
        row_cost: cost of the lookup of a row in the first segment, once the changes by all others are loaded.
        key_group_cost: additional cost of the first lookup in a key group.
        rest_after_ms: milliseconds from the end of the first batch until the rest is loaded in the background.
    """

    mode: RestoreMode
    budget: int = 0
    row_cost: int = 0
    key_group_cost: int = 0
    rest_after_ms: int = 0


AT_ONCE = RestorePlan("by_segment")
"""Plan for state of which nothing is known but its segments."""


def restore_plan(
    chain: Chain, config: CheckpointConfig, *, has_exact_rows: bool, is_base_due: bool, requests_are_slow: bool
) -> RestorePlan:
    """Plan for the state of a subtask.

    Args:
        chain: the state.
        config: settings of the query.
        has_exact_rows: whether `chain.rows` was counted, and each row is in the key group of its key.
        is_base_due: whether a base of the version is due, which needs all rows.
        requests_are_slow: whether a request to the storage takes long: then one reads all segments at the same time,
            rather than one row or one key group.
    """
    if not has_exact_rows:
        return AT_ONCE
    if config.restore == "eager" or is_base_due or chain.rows < MIN_LAZY_ROWS:
        return AT_ONCE if requests_are_slow else RestorePlan("by_key_group")
    if requests_are_slow or not _lookups_pay(chain):
        return RestorePlan("by_row", rest_after_ms=REST_AFTER_MS)
    return RestorePlan(
        "by_row",
        budget=chain.rows // MAX_LOOKUP_SHARE,
        row_cost=COMPRESSED_ROW_COST if chain.entries[0].has(COMPRESSED) else ROW_COST,
        key_group_cost=chain.rows // max(1, chain.entries[0].offsets.size) // CHECKED_ROWS,
        rest_after_ms=REST_AFTER_MS,
    )


def _lookups_pay(chain: Chain) -> bool:
    """True if rows can be looked up in the first segment, the others have few changes, and the last batches had few."""
    if not chain.entries or not chain.entries[0].has(ORDERED):
        return False
    base, *deltas = chain.entries
    weight = base.size * (COMPRESSED_WEIGHT if base.has(COMPRESSED) else 1)
    if any(delta.is_base or delta.has(ORDERED) for delta in deltas):
        return False
    batches = (delta.size // (delta.version - delta.first_version + 1) for delta in deltas[-NEWEST_DELTAS:])
    return sum(delta.size for delta in deltas) * MAX_DELTA_SHARE <= base.size and all(
        changed * MAX_BATCH_SHARE <= weight for changed in batches
    )
