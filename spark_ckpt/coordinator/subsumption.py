"""Subsumption of completed checkpoints: deletes their records first, then the files that no other checkpoint needs.

A checkpoint with a tag counts as another one. The tags are listed after the records are deleted
(`spark_ckpt.location.tags`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.policy import retained_age_ms, retained_checkpoints
from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord, select_subsumed
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.tags import Tag, Tags
from spark_ckpt.spark_files.evolved import forget_before
from spark_ckpt.storage import Request

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 5.0

GATHERED = 16
"""Subsumed checkpoints that are dropped at once, at most, where deletions are deferred."""

GATHER_SECONDS = 60.0
"""Seconds between two drops there, unless as many checkpoints wait: one request each then deletes the records and the
files of all of them."""


class Subsumption:
    """Deletion of a job's subsumed checkpoints while it is the owner.

    Nothing is deleted without proof of ownership. Where deletions are deferred (`Storage.defers_deletions`), completed
    checkpoints prove it: the one just completed for the records that it subsumes, the next one for their files. Else
    the log is asked before the records are deleted, and again before their files are.

    Where they are deferred, each deletion costs a request, so several checkpoints are dropped together.

    Args:
        job: open job.
        on_subsumed: called for each checkpoint once its record is deleted.
        clock: time source.
    """

    def __init__(self, job: OpenJob, on_subsumed: Callable[[CheckpointRecord], None], clock: Clock) -> None:
        self._job = job
        self._on_subsumed = on_subsumed
        self._clock = clock
        self._is_due = False
        self._is_gathering = False
        self._gathers_until = -math.inf
        self._is_proven_owner = False
        self._tags: Request[list[Tag]] | None = None
        """The tags, listed after the last record was deleted."""
        self._dropped: list[CheckpointRecord] = []
        """Checkpoints whose records are deleted, and their files not yet."""
        self._is_stopped = False

    def on_durable(self) -> None:
        """Note a completed checkpoint, which may subsume others.

        Its id was free, and a claim takes the next free id. So no driver that could have seen the deleted records had
        claimed by then, and their files can be deleted.
        """
        self._delete_unused()
        self._is_due = self._is_proven_owner = True

    def drop_subsumed(self) -> None:
        """Drop subsumed checkpoints, or leave them until there are more. After a failure, the next call retries."""
        # Called after each ack, and due after a completed checkpoint.
        if self._is_due and not self._is_stopped and self._has_settled_backlog():
            # Another driver may claim from here on.
            is_proven_owner, self._is_proven_owner = self._is_proven_owner, False
            subsumed = self._subsumed()
            is_deferred = self._job.storage.defers_deletions
            if is_deferred and len(subsumed) < GATHERED and self._clock.monotonic() < self._gathers_until:
                self._is_due, self._is_gathering = False, bool(subsumed)
                return
            self._is_due = not self._drop(subsumed, is_deferred and is_proven_owner)
            if not is_deferred and not self._settle_unused():
                self._is_due = True

    @property
    def seconds_to_timer(self) -> float | None:
        """Seconds until `run_timer` has something to do; None if that depends on the next checkpoint."""
        if not self._is_gathering or self._is_stopped:
            return None
        return max(0.0, self._gathers_until - self._clock.monotonic())

    def run_timer(self) -> None:
        """Drop checkpoints that wait for others, if no batch has come meanwhile."""
        if self.seconds_to_timer == 0.0:
            self._gathers_until = self._clock.monotonic() + GATHER_SECONDS  # also after a failure
            if self._has_settled_backlog() and self._drop(self._subsumed()):
                self._settle_unused()

    def _subsumed(self) -> list[CheckpointRecord]:
        config = self._job.config
        return select_subsumed(self._droppable(), retained_checkpoints(config), retained_age_ms(config))

    def stop(self) -> None:
        """Drop no more checkpoints: a rollback may publish one again whose files the registry does not know."""
        self._is_stopped = True

    def close(self, discard: bool) -> None:
        """Delete the files of dropped checkpoints, unless another driver may need them. Never raises.

        Args:
            discard: whether to drop all checkpoints first.
        """
        self._job.backlog.close(_CLOSE_SECONDS)
        if self._is_due or self._is_gathering:
            self._is_due, self._gathers_until = True, -math.inf
            self.drop_subsumed()
        if self._is_stopped or not discard or self._drop_all():
            self._settle_unused()

    def _drop_all(self) -> bool:
        """Drop all checkpoints, unless their ids could be reused."""
        checkpoints = self._droppable()
        try:
            if checkpoints:
                self._job.store.keep_counting()
        except SparkCkptError as e:
            self._log(e)
            return False
        return self._drop(checkpoints)

    def _has_settled_backlog(self) -> bool:
        """True if the references of all checkpoints are known. Those of a dropped checkpoint can no longer be read."""
        try:
            self._job.backlog.settle()
        except SparkCkptError as e:
            self._log(e)
        return self._job.backlog.is_done

    def _droppable(self) -> list[CheckpointRecord]:
        store = self._job.store
        return [record for record in store.all() if store.may_subsume(record)]

    def _drop(self, records: list[CheckpointRecord], is_proven_owner: bool = False) -> bool:
        if records and not is_proven_owner and not self._asks_for_owner():
            return False
        storage = self._job.storage
        self._tags = None if records else self._tags
        try:
            for group in deletable_together(records) if storage.defers_deletions else [[each] for each in records]:
                # The records first: a visible checkpoint must be complete.
                self._job.store.subsume(*group)
                self._dropped += group
                for record in group:
                    self._on_subsumed(record)
        except SparkCkptError as e:
            self._log(e)
            return False
        self._is_gathering = False
        if records:
            self._tags = self._list_tags()
            self._gathers_until = self._clock.monotonic() + GATHER_SECONDS
        return True

    def _list_tags(self) -> Request[list[Tag]]:
        return self._job.storage.begin(Tags(self._job.storage).list)

    def _forget_evolutions(self, tagged: Iterable[CheckpointRecord]) -> None:
        """Delete files of Spark that an evolution of the query has replaced, once no checkpoint is from before it."""
        retained = self._job.store.all()
        evolved = max((record.evolved for record in retained if record.evolved is not None), default=-1)
        oldest = min((record.batch_id for record in (*retained, *tagged)), default=-1)
        if 0 <= evolved < oldest:
            forget_before(self._job.storage, oldest)

    def _asks_for_owner(self) -> bool:
        """True if this driver is the owner; False if the storage does not answer."""
        try:
            self._job.store.check_owner()
        except SparkCkptError as e:
            self._log(e)
            return False
        return True

    def _log(self, error: SparkCkptError) -> None:
        _log.warning("%s: cannot delete subsumed checkpoints yet: %s", self._job.storage.location, error)

    def _settle_unused(self) -> bool:
        """Delete their files, unless another driver has claimed before their records were deleted."""
        return not self._dropped or (self._asks_for_owner() and self._delete_unused())

    def _delete_unused(self) -> bool:
        """Delete the files of dropped checkpoints, unless a tag or another checkpoint needs them.

        Returns:
            False if the storage does not say which tags there are, or does not show those who create one what is gone.
        """
        if not self._dropped:
            return True
        if not self._job.store.shows_drops:
            self._tags = None
            return False
        listed, self._tags = self._tags or self._list_tags(), None
        try:
            tagged = {tag.checkpoint_id for tag in listed.result()}
            held = self._job.backlog.tagged()
        except SparkCkptError as e:
            self._log(e)
            return False
        held |= {record.id: record for record in self._dropped}
        self._dropped = []
        unused: list[str] = []
        for record in [record for record in held.values() if record.id not in tagged]:
            del held[record.id]
            unused += [record.metadata.path, *self._job.registry.unregister(record.id)]
        self._job.cleaner.submit(in_location(path) for path in unused)
        try:
            self._forget_evolutions(held.values())
        except SparkCkptError as e:
            self._log(e)
        return True


def deletable_together(records: Iterable[CheckpointRecord]) -> list[list[CheckpointRecord]]:
    """Groups of checkpoints whose records one request may delete, in any order, and in part.

    Of a version that a later run has repeated, the earlier checkpoint is dropped before the later one.

    Args:
        records: checkpoints in the order in which to drop them.
    """
    groups: list[list[CheckpointRecord]] = []
    for record in records:
        if not groups or any(other.version == record.version for other in groups[-1]):
            groups.append([])
        groups[-1].append(record)
    return groups
