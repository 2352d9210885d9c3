"""Completion of checkpoints: retries up to the tolerated failures, and unknown outcomes."""

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
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.statistics import stats_of_durable
from spark_ckpt.errors import StorageError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.location.orphans import MINIMUM_GRACE_SECONDS
from spark_ckpt.messages import Ack, Trigger

_log = logging.getLogger(__name__)

_REMEMBERED = 4
"""Batches whose start is remembered."""


class RecentBatches:
    """Start times of recent batches, by a monotonic clock.

    Args:
        clock: time source.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: dict[int, float] = {}

    def began(self, version: int) -> None:
        """Record the start of the batch that leaves this version. The first start counts."""
        self._began.setdefault(version, self._clock.monotonic())
        for old in sorted(self._began)[:-_REMEMBERED]:
            del self._began[old]

    def __contains__(self, version: object) -> bool:
        """True if the batch that leaves this version started recently, in this process."""
        began = self._began.get(version) if isinstance(version, int) else None
        return began is not None and self._clock.monotonic() - began < MINIMUM_GRACE_SECONDS


class Completion:
    """Completion of pending checkpoints.

    A try with an unknown outcome leaves its draft in doubt. The next try waits until the store has settled it.

    Args:
        job: open job.
        failures: tolerated failures.
        history: statistics of the checkpoints so far.
        recent: recently started batches.
        clock: times, and pauses between tries.
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
        """Acks of a checkpoint that may be complete, whose files must stay."""
        return self._doubt.acks if self._doubt is not None else {}

    def complete(self, pending: PendingCheckpoint, trigger: Trigger, parent: CheckpointState) -> CheckpointState:
        """Complete a checkpoint, which is durable on return.

        Raises:
            TooManyFailuresError: more consecutive storage failures than tolerated.
            FencedError: another driver has taken over.
            CheckpointError: a state file of an ack is missing.
        """
        while True:
            try:
                return self.settle() or self._try(Draft(trigger, pending, self._recent), parent)
            except (StorageError, UnknownOutcomeError) as e:  # noqa: PERF203
                _log.warning("cannot complete the checkpoint of batch %d: %s", pending.batch_id, e)
                pending.failures[FailureReason.STORAGE] += 1
                self._clock.sleep(self._failures.storage_failed(pending.batch_id, e))

    def settle(self) -> CheckpointState | None:
        """Settle the draft in doubt.

        Returns:
            Completed checkpoint of the draft; None if none was in doubt, or if it is not complete.

        Raises:
            UnknownOutcomeError, StorageError: the outcome is still unknown.
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
