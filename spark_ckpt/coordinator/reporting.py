"""Sending of a job's reports, at moments when no task waits for them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.statistics import CheckpointStats
from spark_ckpt.coordinator import reports
from spark_ckpt.coordinator.failures import Abort
from spark_ckpt.coordinator.open_job import Environment, OpenJob
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.reports import Report, Run
from spark_ckpt.location.savepoint_notes import SavepointNotes
from spark_ckpt.messages import Trigger

_log = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0
"""Least time from the trigger to a report of acks, and between two of them."""

SAVEPOINT_SECONDS = 60.0
"""Least time between two looks for a savepoint: each costs a request to the storage."""


class Reporting:
    """Reports of one job, in the order of events. Never raises: a checkpoint does not fail for its report.

    The report of a completed checkpoint is made by `flush`, after its last ack has been answered.

    A store without a query has none.

    Args:
        trigger: first trigger of the job, which says whether the driver wants details.
        job: the open job; the backlog of its cleaner is part of each report.
        send: sends a report to the driver; thread-safe.
        environment: its clock spaces the reports of acks, and a background thread looks for savepoints.
    """

    def __init__(
        self, trigger: Trigger, job: OpenJob, send: Callable[[Report], None], environment: Environment
    ) -> None:
        self._run = None if trigger.is_standalone else Run.of(trigger, job.store.generation)
        self._detailed = trigger.report_details
        self._operators = trigger.operators
        self._cleaner = job.cleaner
        self._storage = job.storage
        self._send = send
        self._clock = environment.clock
        self._in_background = environment.in_background
        self._savepoints = SavepointNotes(job.storage)
        self._savepoints_due = 0.0
        self._unsent: Callable[[Run], Report] | None = None
        self._acks = 0  # in the newest report of the pending checkpoint
        self._progress_due = 0.0
        if self._detailed:
            self._report(lambda run: reports.started(run, trigger, job))

    def restored(self, state: CheckpointState, now_ms: int) -> None:
        """Report the checkpoint that the run starts from, unless a restarted side process continues the run."""
        run, record = self._run, state.record
        if run is not None and record is not None and record.owner.run_id != run.run_id:
            path = self._storage.describe(in_location(record.metadata.path))
            self._report(lambda run: reports.restored(run, state, path, now_ms))

    def triggered(self, trigger: Trigger, pending: PendingCheckpoint) -> None:
        """Report a new pending checkpoint."""
        self._operators = trigger.operators
        self._noted(0)
        self._report(lambda run: reports.triggered(run, pending))

    def progressed(self, pending: PendingCheckpoint | None) -> None:
        """Report the acks of the pending checkpoint, if they have changed and a report is due."""
        if pending is not None and self.seconds_to_progress(pending) == 0.0:
            self._noted(len(pending.acks))
            self._report(lambda run: reports.progress(run, pending))

    def seconds_to_progress(self, pending: PendingCheckpoint | None) -> float | None:
        """Seconds until `progressed` has a report to send; None if it has none."""
        if self._run is None or not self._detailed or pending is None or len(pending.acks) == self._acks:
            return None
        return max(0.0, self._progress_due - self._clock.monotonic())

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

    def look_for_savepoint(self) -> None:
        """Report the latest savepoint of the query, if it is new. Looks at most once a minute, on another thread."""
        run = self._run
        if run is not None and self._detailed and (now := self._clock.monotonic()) >= self._savepoints_due:
            self._savepoints_due = now + SAVEPOINT_SECONDS
            self._in_background(lambda: self._report_savepoint(run))

    def _report_savepoint(self, run: Run) -> None:
        if (note := self._savepoints.next()) is not None:
            self._send(reports.savepoint(run, note))

    def _noted(self, acks: int) -> None:
        if self._run is not None:
            self._acks, self._progress_due = acks, self._clock.monotonic() + PROGRESS_SECONDS

    def _deletions(self) -> Report:
        return {"files_to_delete": self._cleaner.backlog, "files_left_behind": self._cleaner.undeleted}

    def _report(self, make: Callable[[Run], Report]) -> None:
        self.flush()
        self._unsent = make
        self.flush()
