"""Rescale of a running query: a request, its check between two batches, and the first batch with the new number."""

from __future__ import annotations

import logging
from collections.abc import Callable

from spark_ckpt.checkpoint.batch import state_ids
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.config.spark_settings import FILE_MANAGER_CLASS
from spark_ckpt.coordinator.open_job import Environment, OpenJob
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.rescale_request import RescaleAnswer, RescaleRequest, answer_request, read_again, read_request
from spark_ckpt.messages import Rescale, RescaleReply, Trigger
from spark_ckpt.rescaling.assignment import Assignment, assign
from spark_ckpt.rescaling.begun import begun_rescale
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.rescaling.operators import add_metadata
from spark_ckpt.rescaling.plan import plan_rescale
from spark_ckpt.spark_files.logs import SparkLog

_log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
"""Least time between two looks for a request."""

SLOW_LOOK_SECONDS = 60.0
"""The same where a request to the storage takes long, and costs money."""


class RunningRescale:
    """Rescales of one run. Not thread-safe, except that looks for requests run on another thread.

    Args:
        job: the open job.
        environment: its clock spaces the looks for requests, which run in the background.
        want: asks the driver for a rescale before its next batch; thread-safe.
    """

    def __init__(self, job: OpenJob, environment: Environment, want: Callable[[int], None]) -> None:
        self._storage = job.storage
        self._check_owner = job.store.check_owner
        self._environment = environment
        self._want = want
        self._look_due = 0.0
        self._request: RescaleRequest | None = None  # set by another thread
        self._ready: Assignment | None = None
        self._begun: Assignment | None = None

    # ---- between two batches -----------------------------------------------------------------------------------------

    def agree(self, request: Rescale, last: Trigger, parent: CheckpointState) -> RescaleReply:
        """Agrees to a rescale. It begins with Spark's entry of the next batch in the offset log.

        Args:
            request: request of the driver.
            last: trigger of the last batch.
            parent: its checkpoint.

        Raises:
            RescaleRefusedError: the rescale is impossible. The query continues as it was.
        """
        with_ids = last.checkpoint_format > 1
        try:
            self._check_wanted(request)
            assignment = self._assign(request, last, parent)
            if with_ids:
                self._extend_commit(assignment)
        except SparkCkptError as error:
            reason = error.reason if isinstance(error, RescaleRefusedError) else str(error)
            self._answer(RescaleAnswer(refused=reason))
            raise RescaleRefusedError(self._storage.location, request.partitions, reason) from error
        self._ready = assignment
        ids = state_ids(assignment.assigned_batch) if with_ids else {}
        return RescaleReply(assignment.plan.before, {str(operator): stores for operator, stores in ids.items()})

    def _check_wanted(self, request: Rescale) -> None:
        """Its command may have withdrawn the request meanwhile."""
        if self._request is not None and read_again(self._storage, self._request) is None:
            reason = "the request was withdrawn"
            raise RescaleRefusedError(self._storage.location, request.partitions, reason)

    def _assign(self, request: Rescale, last: Trigger, parent: CheckpointState) -> Assignment:
        location, partitions = self._storage.location, request.partitions
        if parent.batch is None or parent.version != request.version:
            reason = f"version {request.version} of the state has no complete checkpoint. Ask again later"
            raise RescaleRefusedError(location, partitions, reason)
        offsets = SparkLog(self._storage).offsets(last.batch_id)
        plan = plan_rescale(location, partitions, last.batch_id, offsets, parent.batch)
        return assign(self._storage, parent, plan, repeatable=True)

    def _extend_commit(self, assignment: Assignment) -> None:
        """Adds the state ids of further partitions to the last entry of the commit log. A start after a crash takes the
        ids from there, by partition. One with the number before does not look at those that were added."""
        log, batch_id = SparkLog(self._storage), assignment.plan.batch_id - 1
        before, after = state_ids(assignment.batch), state_ids(assignment.assigned_batch)
        if any(len(after[operator]) > len(ids) for operator, ids in before.items()):
            both = {operator: [*ids, *after[operator][len(ids) :]] for operator, ids in before.items()}
            self._check_owner()
            log.replace_commit(batch_id, log.commit(batch_id).with_state_ids(both))

    # ---- first batch with the new number -----------------------------------------------------------------------------

    def parent_of(self, trigger: Trigger, parent: CheckpointState) -> CheckpointState:
        """The checkpoint that a batch starts from, by the partitions of the batch. Writes state that is inside
        `_metadata` to a file.

        Args:
            trigger: trigger of the batch.
            parent: the checkpoint.

        Raises:
            RescaleRefusedError, SparkLogFormatError, StateSchemaError, StorageError: see `begun_rescale`.
        """
        ready, self._ready = self._ready, None
        assignment = ready if _is_of(ready, trigger, parent) else begun_rescale(self._storage, trigger, parent)
        if assignment is None:
            return parent
        if (file := assignment.inline) is not None:
            self._storage.write_atomic(in_location(file.path), file.data)
        self._begun = assignment
        plan = assignment.plan
        _log.info("batch %d has %d partitions; it had %d before", trigger.batch_id, plan.after, plan.before)
        return assignment.state()

    def file_of(self, version: int) -> str | None:
        """File that `parent_of` has written for the batch that leaves a version, relative to `ckpt`; None without one.
        The batch may have replaced all of its state."""
        begun = self._begun
        if begun is None or begun.plan.batch_id + 1 != version or begun.inline is None:
            return None
        return begun.inline.path

    # ---- after a batch -----------------------------------------------------------------------------------------------

    def after_batch(self, last: Trigger) -> None:
        """Writes Spark's metadata of the operators after the first batch with a new number, and looks for a request.
        Never raises.

        Args:
            last: trigger of the last batch.
        """
        if self._begun is not None and self._begun.plan.batch_id <= last.batch_id:
            self._finish(self._begun)
        environment, now = self._environment, self._environment.clock.monotonic()
        if environment.looks_for_rescales and now >= self._look_due and not last.is_standalone:
            self._look_due = now + (SLOW_LOOK_SECONDS if self._storage.requests_are_slow else LOOK_SECONDS)
            environment.in_background(lambda: self._look(last))

    def _finish(self, begun: Assignment) -> None:
        plan = begun.plan
        try:
            add_metadata(SparkLog(self._storage), begun.batch, plan.batch_id, plan.after)
        except SparkCkptError as e:
            _log.warning("the statestore source will show the partitions before the rescale: %s", e)
        self._begun = None
        self._answer(RescaleAnswer(batch_id=plan.batch_id, before=plan.before))

    def _look(self, last: Trigger) -> None:
        try:
            request = read_request(self._storage)
        except SparkCkptError as e:
            _log.warning("cannot look for a rescale: %s", e)
            return
        if request is None or request.answer is not None:
            self._request = None
            return
        self._request = request
        if last.log_epoch is None:
            self._answer(RescaleAnswer(refused=f"the query runs without {FILE_MANAGER_CLASS}, which 'configure' sets"))
        elif last.is_real_time:
            self._answer(RescaleAnswer(refused="a query in real-time mode must be stopped first"))
        elif max((operator.parallelism for operator in last.operators), default=0) == request.partitions:
            self._answer(RescaleAnswer(before=request.partitions))
        else:
            self._want(request.partitions)

    def _answer(self, answer: RescaleAnswer) -> None:
        request, self._request = self._request, None
        if request is not None:
            try:
                answer_request(self._storage, request, answer)
            except SparkCkptError as e:
                _log.warning("cannot answer the request for a rescale: %s", e)


def _is_of(ready: Assignment | None, trigger: Trigger, parent: CheckpointState) -> bool:
    """True if an assignment is that of a batch."""
    return (
        ready is not None
        and ready.parent is parent
        and ready.plan.batch_id == trigger.batch_id
        and any(operator.parallelism == ready.plan.after for operator in trigger.operators)
    )
