"""Reasons of checkpoint failures, and their tolerated number (Flink: `CheckpointFailureManager`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.config import TOLERABLE_FAILURES
from spark_ckpt.config.retries import pause_after
from spark_ckpt.coordinator.errors import TooManyFailuresError


class FailureReason(Enum):
    """Reason of an aborted checkpoint or of a retry (Flink: `CheckpointFailureReason`)."""

    DECLINED = "declined"
    """A store could not make its snapshot. Its task runs again."""

    TASK_FAILED = "task failed"
    """A task failed after its acknowledgement. It runs again."""

    BASE = "base snapshot"
    """A store could not write a base. Its chain of deltas grows, up to the bound."""

    STORAGE = "storage"
    """Files, `_metadata` or the record could not be written."""

    EXPIRED = "expired"
    """The checkpoint exceeded the timeout of the query's settings."""

    INCOMPLETE = "incomplete"
    """Another batch began before all subtasks had acknowledged."""

    QUERY_ENDED = "query ended"
    """The query ended or was stopped during the batch."""

    SHUTDOWN = "coordinator shutdown"
    """The driver went away during the batch."""

    FENCED = "fenced"
    """Another driver has taken over."""


ORDERLY = (FailureReason.QUERY_ENDED, FailureReason.SHUTDOWN)
"""Reasons of a regular end: the query or its driver stops."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Reason and detail of an aborted checkpoint.

    Args:
        reason: kind of failure.
        detail: explanation, as text.
    """

    reason: FailureReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}"


class FailureManager:
    """Failure counts by reason, with a limit on consecutive storage failures.

    Args:
        tolerable: consecutive storage failures that the coordinator retries.

    Attributes:
        counts: failures of this run by reason.
    """

    def __init__(self, tolerable: int) -> None:
        self.counts: Counter[FailureReason] = Counter()
        self._tolerable = tolerable
        self._causes: Counter[str] = Counter()

    def count(self, reason: FailureReason) -> None:
        """Count a failure that this class does not handle."""
        self.counts[reason] += 1

    def storage_failed(self, batch_id: int, cause: Exception) -> float:
        """Count a storage failure during the completion of a checkpoint.

        Returns:
            Seconds to wait before the next try.

        Raises:
            TooManyFailuresError: too many consecutive failures.
        """
        self.count(FailureReason.STORAGE)
        self._causes[str(cause)] += 1
        failures = self._causes.total()
        if failures > self._tolerable:
            raise TooManyFailuresError(batch_id, self._tolerable, dict(self._causes), TOLERABLE_FAILURES.key) from cause
        return pause_after(failures)

    def succeeded(self) -> None:
        """Reset the consecutive failures after a completed checkpoint."""
        self._causes.clear()
