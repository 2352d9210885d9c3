"""What the coordinator asks a store to do to its chain."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from spark_ckpt.format.segment_ref import SegmentRef


class Kind(Enum):
    """Kind of a compaction."""

    NONE = "none"
    FULL = "full"
    """A base: the whole table."""
    MERGE = "merge"
    """One delta in place of several."""


class CompactionRequest(NamedTuple):
    """Request for a shorter chain, as part of a reply to a store, which works on it in the background.

    Args:
        kind: what the store should write, if anything.
        inputs: deltas that the store should merge, above all that is in progress; empty unless it is a merge.
        required: the next ack must bring a base.
    """

    kind: Kind = Kind.NONE
    inputs: tuple[SegmentRef, ...] = ()
    required: bool = False

    @property
    def is_full(self) -> bool:
        """True if a base is due."""
        return self.kind is Kind.FULL


NO_REQUEST = CompactionRequest()
FULL = CompactionRequest(Kind.FULL)
REQUIRED = CompactionRequest(Kind.FULL, required=True)
