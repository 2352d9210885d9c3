"""Texts and reasons of aborts."""

from __future__ import annotations

from spark_ckpt.coordinator.failures import Abort, FailureReason
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.messages import Trigger

ORDERLY = (FailureReason.QUERY_ENDED, FailureReason.SHUTDOWN)
"""Reasons of a regular end: the query or its driver stops."""


def superseded(pending: PendingCheckpoint, trigger: Trigger) -> Abort:
    """Abort of a pending checkpoint because of a trigger."""
    if pending.version == trigger.version:
        return Abort(FailureReason.STORAGE, "its completion failed, and its batch starts again")
    return Abort(FailureReason.INCOMPLETE, f"{lack_of(pending)} before batch {trigger.batch_id} began")


def lack_of(pending: PendingCheckpoint) -> str:
    """What keeps a pending checkpoint from completing."""
    if pending.is_complete:
        return "its end offsets did not arrive"
    return f"{pending.describe_missing()} did not acknowledge"
