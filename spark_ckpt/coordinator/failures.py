"""What can go wrong with a checkpoint, and how much of it is tolerated (Flink: `CheckpointFailureManager`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.config import TOLERABLE_FAILURES
from spark_ckpt.errors import TooManyFailuresError

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0


class FailureReason(Enum):
    """Why a checkpoint was given up, or what it had to be tried again for (Flink: `CheckpointFailureReason`)."""

    DECLINED = "declined"
    """A store could not make its snapshot. Its task runs again."""

    TASK_FAILED = "task failed"
    """A task failed after it had acknowledged. It runs again."""

    STORAGE = "storage"
    """Files, `_metadata` or the record could not be written."""

    EXPIRED = "expired"
    """It took longer than the query's settings allow."""

    INCOMPLETE = "incomplete"
    """Another batch began before all subtasks had acknowledged."""

    QUERY_ENDED = "query ended"
    """The query came to an end, or was stopped, during the batch."""

    SHUTDOWN = "coordinator shutdown"
    """The driver went away during the batch."""

    FENCED = "fenced"
    """Another driver has taken over."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Why a pending checkpoint was given up.

    Args:
        reason: the kind.
        detail: what was the matter, for a person.
    """

    reason: FailureReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.detail}"


class FailureManager:
    """Counts failures by reason, and those of the storage in a row, of which some are tolerated.

    Args:
        tolerable: failures in a row after which the coordinator tries again by itself.

    Attributes:
        counts: failures of this run by reason.
    """

    def __init__(self, tolerable: int) -> None:
        self.counts: Counter[FailureReason] = Counter()
        self._tolerable = tolerable
        self._causes: Counter[str] = Counter()

    def count(self, reason: FailureReason) -> None:
        """Something failed that is made good elsewhere, or cannot be."""
        self.counts[reason] += 1

    def storage_failed(self, batch_id: int, cause: Exception) -> float:
        """Completing a checkpoint failed.

        Returns:
            Seconds after which to try again.

        Raises:
            TooManyFailuresError: it has failed too often in a row.
        """
        self.count(FailureReason.STORAGE)
        self._causes[str(cause)] += 1
        failures = self._causes.total()
        if failures > self._tolerable:
            raise TooManyFailuresError(batch_id, self._tolerable, dict(self._causes), TOLERABLE_FAILURES.key) from cause
        return min(_FIRST_PAUSE_SECONDS * 2.0 ** (failures - 1), _LONGEST_PAUSE_SECONDS)

    def succeeded(self) -> None:
        """A checkpoint is complete: what failed before it is forgiven."""
        self._causes.clear()
