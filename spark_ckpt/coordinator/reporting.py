"""Sending of a job's reports, at moments when no task waits for them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.coordinator import reports
from spark_ckpt.coordinator.failures import Abort
from spark_ckpt.coordinator.messages import Trigger
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.reports import Report, Run
from spark_ckpt.location.cleaner import Cleaner

_log = logging.getLogger(__name__)


class Reporting:
    """Reports of one job, in the order of events. Never raises: a checkpoint does not fail for its report.

    The report of a completed checkpoint is made by `flush`, after its last ack has been answered.

    A store without a query has none.

    Args:
        trigger: first trigger of the job, which says whether the driver wants operators and subtasks.
        generation: generation of the job's claim.
        cleaner: cleaner of the job, whose backlog is part of each report.
        send: sends a report to the driver.
    """

    def __init__(self, trigger: Trigger, generation: int, cleaner: Cleaner, send: Callable[[Report], None]) -> None:
        self._run = None if trigger.is_standalone else Run.of(trigger, generation)
        self._detailed = trigger.report_details
        self._operators = trigger.operators
        self._cleaner = cleaner
        self._send = send
        self._unsent: Callable[[Run], Report] | None = None

    def restored(self, state: CheckpointState, path: str, now_ms: int) -> None:
        """Report the checkpoint that the run starts from."""
        self._report(lambda run: reports.restored(run, state, path, now_ms))

    def triggered(self, trigger: Trigger, pending: PendingCheckpoint) -> None:
        """Report a new pending checkpoint."""
        self._operators = trigger.operators
        self._report(lambda run: reports.triggered(run, pending))

    def completed(self, pending: PendingCheckpoint, state: CheckpointState, stats: CheckpointStats) -> None:
        """Note a durable checkpoint, for `flush`."""
        if self._run is not None:  # the acks in `pending` hold state
            operators, detailed = self._operators, self._detailed
            self._unsent = lambda run: reports.completed(run, operators, pending, state, stats, detailed=detailed)

    def failed(self, pending: PendingCheckpoint, abort: Abort, now_ms: int) -> None:
        """Report an aborted checkpoint."""
        operators, detailed = self._operators, self._detailed
        self._report(lambda run: reports.failed(run, operators, pending, abort, now_ms, detailed=detailed))

    def flush(self) -> None:
        """Report the completed checkpoint that was noted last, if any."""
        make, self._unsent = self._unsent, None
        if make is not None and self._run is not None:
            try:
                self._send({**make(self._run), **self._deletions()})
            except Exception:
                _log.exception("cannot report a checkpoint to the driver")

    def _deletions(self) -> Report:
        return {"files_to_delete": self._cleaner.backlog, "files_left_behind": self._cleaner.left_behind}

    def _report(self, make: Callable[[Run], Report]) -> None:
        self.flush()
        self._unsent = make
        self.flush()
