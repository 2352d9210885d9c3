"""Merged deltas: which deltas of a chain they replace."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.messages import MergedDeltas


def digest_of(deltas: Sequence[SegmentRef]) -> str:
    """Digest that identifies deltas by their place, and inline ones by their bytes: no file name is used twice.

    A merged delta comes back with it, perhaps many batches later and to another driver, and replaces these deltas only.

    Args:
        deltas: neighbouring deltas of a chain.
    """
    digest = hashlib.sha256()
    for delta in deltas:
        start = int(delta.offsets[0]) if delta.offsets.size else 0
        digest.update(f"{delta.path}:{start}:{delta.size}:{delta.first_version}:{delta.version}\n".encode())
        if delta.path is None:
            digest.update(delta.data)
    return digest.hexdigest()[:32]


def useless(merged: MergedDeltas, chain: Chain | None) -> str | None:
    """Reason why a merged delta cannot replace deltas of a chain; None if it can.

    Args:
        merged: merged delta in an ack.
        chain: chain of the subtask in the parent checkpoint; None without a parent.
    """
    run = None if chain is None else chain.run_of(merged.first_version, merged.version)
    if chain is None or run is None:
        return "the chain has no such deltas"
    if digest_of(chain.entries[run.first : run.end]) != merged.digest:
        return "the chain has other deltas of these versions"
    return None
