"""Completing a checkpoint, as often as failures are tolerated, and finding out about one whose outcome is unknown."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.statistics import StatsHistory
from spark_ckpt.clock import Clock
from spark_ckpt.completed.errors import UnknownOutcomeError
from spark_ckpt.coordinator.failures import FailureManager, FailureReason
from spark_ckpt.coordinator.finalize import Draft, finalize
from spark_ckpt.coordinator.messages import Ack, Trigger
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.recent_batches import RecentBatches
from spark_ckpt.coordinator.statistics import stats_of_durable
from spark_ckpt.errors import StorageError
from spark_ckpt.format.keys import SubtaskKey

_log = logging.getLogger(__name__)


class Completion:
    """Turns pending checkpoints into completed ones.

    A try whose outcome is unknown leaves its draft in doubt. Nothing else is tried until the store has settled it.

    Args:
        job: the open job.
        failures: what is tolerated.
        history: statistics of the checkpoints so far.
        recent: the batches that began a short while ago.
        clock: for times and for pauses between tries.
    """

    def __init__(
        self, job: OpenJob, failures: FailureManager, history: StatsHistory, recent: RecentBatches, clock: Clock
    ) -> None:
        self._job = job
        self._recent = recent
        self._failures = failures
        self._history = history
        self._clock = clock
        self._doubt: Draft | None = None

    @property
    def is_in_doubt(self) -> bool:
        """True if the outcome of the pending checkpoint is unknown."""
        return self._doubt is not None

    @property
    def acks_in_doubt(self) -> Mapping[SubtaskKey, Ack]:
        """The acks of a checkpoint that may be complete: their files must stay."""
        return self._doubt.acks if self._doubt is not None else {}

    def complete(self, pending: PendingCheckpoint, trigger: Trigger, parent: CheckpointState) -> CheckpointState:
        """Completes a checkpoint. When this returns, it is durable.

        Raises:
            TooManyFailuresError: the storage failed more often in a row than is tolerated.
            FencedError: another driver has taken over.
            CheckpointError: a state file that a task named is not there.
        """
        while True:
            try:
                return self.settle() or self._try(Draft(trigger, pending, self._recent), parent)
            except (StorageError, UnknownOutcomeError) as e:  # noqa: PERF203
                _log.warning("the checkpoint of batch %d cannot be completed: %s", pending.batch_id, e)
                pending.failures[FailureReason.STORAGE] += 1
                self._clock.sleep(self._failures.storage_failed(pending.batch_id, e))

    def settle(self) -> CheckpointState | None:
        """Finds out about a draft in doubt, before anything else is done.

        Returns:
            Its checkpoint, which is complete. None if there was none in doubt.

        Raises:
            UnknownOutcomeError, StorageError: it cannot be found out yet.
            FencedError: another driver has taken over.
        """
        record = self._job.store.settle()
        draft, self._doubt = self._doubt, None
        if record is None or draft is None:
            return None
        return self._on_durable(draft, draft.completed(record))

    def _try(self, draft: Draft, parent: CheckpointState) -> CheckpointState:
        try:
            state = finalize(self._job, draft, parent, self._history, self._clock.now_ms())
        except UnknownOutcomeError:
            self._doubt = draft
            raise
        return self._on_durable(draft, state)

    def _on_durable(self, draft: Draft, state: CheckpointState) -> CheckpointState:
        assert state.record is not None
        assert draft.stats is not None
        self._failures.succeeded()
        files = state.files()
        self._job.registry.register(state.record.id, files)
        self._job.cleaner.submit(in_location(path) for path in draft.unused if path not in files)
        self._history.add(stats_of_durable(draft.stats, draft.pending, self._clock.now_ms()))
        return state
