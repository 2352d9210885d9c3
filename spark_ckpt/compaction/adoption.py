"""Adoption of the bases and merged deltas that acks bring: whether a chain can have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.compaction.merges import useless
from spark_ckpt.compaction.state_ids import StateIds
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import Ack, BaseSnapshot


class Ignored(NamedTuple):
    """A base or merged deltas that cannot be used.

    Args:
        what: the segment, as text.
        reason: why it cannot be used.
        segment: the segment.
    """

    what: str
    reason: str
    segment: SegmentRef


def adoptable(
    ack: Ack, chain: Chain | None, ids: StateIds, was_deleted: Callable[[SegmentRef], bool] = lambda segment: False
) -> tuple[Ack, tuple[Ignored, ...]]:
    """The ack without a base or merged deltas that cannot be used, and these.

    Notes the base that the store is writing, so that it can be used whenever it arrives.

    Args:
        ack: ack of a pending checkpoint.
        chain: chain of the subtask in the parent checkpoint; None without a parent.
        ids: state ids that count.
        was_deleted: True for a segment whose file was deleted.
    """
    ids.hold(ack, chain.base_version if chain is not None else 0)
    if ack.base is None and ack.merged is None:
        return ack, ()
    ignored = []
    if (base := ack.base) is not None and (reason := _against(ack, base, chain, ids, was_deleted)) is not None:
        ignored.append(Ignored(f"the base snapshot of version {base.version}", reason, base.segment))
        ack = replace(ack, base=None)
    if (merged := ack.merged) is not None:
        reason = "the ack brings a base" if ack.base is not None else useless(merged, chain)
        if (reason := reason or _deleted(merged.segment, was_deleted)) is not None:
            what = f"the merged deltas of versions {merged.first_version} to {merged.version}"
            ignored.append(Ignored(what, reason, merged.segment))
            ack = replace(ack, merged=None)
    return ack, tuple(ignored)


def _against(
    ack: Ack, base: BaseSnapshot, chain: Chain | None, ids: StateIds, was_deleted: Callable[[SegmentRef], bool]
) -> str | None:
    """Reason why a base cannot replace the segments up to its version; None if it can."""
    base_version = chain.base_version if chain else 0
    if not base_version < base.version <= ack.version:
        return f"the chain already has a base of version {base_version}"
    # Rows that such a delta appends to a list may be in the base too.
    if chain is not None and any(
        not entry.is_base and entry.first_version <= base.version < entry.version for entry in chain.entries
    ):
        return "a merged delta has changes of its version and of later ones"
    if base.version == ack.version:
        if base.state_id != ack.state_id:
            return f"it has state {base.state_id}, not the acknowledged state"
    elif (counts := ids.id_of(base.version, ack.subtask)) is None:
        return "the state id of its version is not known: the coordinator has started since it was begun"
    elif base.state_id != counts:
        return f"it has state {base.state_id}, but its version has {counts}"
    return _deleted(base.segment, was_deleted)


def _deleted(segment: SegmentRef, was_deleted: Callable[[SegmentRef], bool]) -> str | None:
    return "its file was deleted" if was_deleted(segment) else None
