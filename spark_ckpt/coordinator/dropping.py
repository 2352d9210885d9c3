"""Dropping completed checkpoints: their records first, then the files that no other checkpoint needs."""

from __future__ import annotations

import logging
from collections.abc import Callable

from spark_ckpt.completed import CheckpointRecord, select_subsumed
from spark_ckpt.coordinator.layout import in_location
from spark_ckpt.coordinator.opening import OpenJob
from spark_ckpt.coordinator.policy import retained_checkpoints
from spark_ckpt.errors import SparkCkptError

_log = logging.getLogger(__name__)


class Dropping:
    """Drops checkpoints of a job, as long as it is the owner.

    Args:
        job: the open job.
        dropped: is told of each checkpoint once its record is gone.
    """

    def __init__(self, job: OpenJob, dropped: Callable[[CheckpointRecord], None]) -> None:
        self._job = job
        self._dropped = dropped
        self._is_due = False
        self._is_shown = False
        self._unused: list[str] = []

    def completed(self) -> None:
        """A checkpoint is complete, and may subsume others.

        Its id was free: a driver that claims takes the next one, so nobody had claimed who could have seen the records
        that were gone by then. Their files can go.
        """
        self._delete_unused()
        self._is_due = self._is_shown = True

    def drop_subsumed(self) -> None:
        """Drops what the newest checkpoints subsume; later, if that is not possible now."""
        if self._is_due:
            is_remote = self._job.storage.is_remote
            subsumed = select_subsumed(self._droppable(), retained_checkpoints(self._job.config))
            # Where a request takes long, the checkpoint has shown a moment ago who the owner is, and the next one shows
            # who it was when the records went.
            self._is_due = not self._drop(subsumed, is_owner=is_remote and self._is_shown)
            self._is_shown = False
            if not is_remote and not self._settle_unused():
                self._is_due = True

    def close(self, discard: bool) -> None:
        """Deletes the files of dropped checkpoints, unless another driver may need them; never raises.

        Args:
            discard: whether to drop all checkpoints before.
        """
        if not discard or self._drop(self._droppable()):
            self._settle_unused()

    def _droppable(self) -> list[CheckpointRecord]:
        store = self._job.store
        return [record for record in store.all() if store.may_subsume(record)]

    def _drop(self, records: list[CheckpointRecord], is_owner: bool = False) -> bool:
        if records and not is_owner and not self._asks_for_owner():
            return False
        try:
            for record in records:
                # The record first: a checkpoint that is found must be whole.
                self._job.store.subsume(record)
                self._unused += [record.metadata.path, *self._job.registry.unregister(record.id)]
                self._dropped(record)
        except SparkCkptError as e:
            self._log(e)
            return False
        return True

    def _asks_for_owner(self) -> bool:
        """Whether it is this driver; no if the storage does not say."""
        try:
            self._job.store.check_owner()
        except SparkCkptError as e:
            self._log(e)
            return False
        return True

    def _log(self, error: SparkCkptError) -> None:
        _log.warning("%s: what is not needed any more stays for now: %s", self._job.storage.location, error)

    def _settle_unused(self) -> bool:
        """Deletes their files, unless a driver has claimed before their records were gone."""
        if self._unused and not self._asks_for_owner():
            return False
        self._delete_unused()
        return True

    def _delete_unused(self) -> None:
        self._job.cleaner.submit(in_location(path) for path in self._unused)
        self._unused = []
