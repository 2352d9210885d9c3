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
        self._unused: list[str] = []

    def completed(self) -> None:
        """A checkpoint is complete, and may subsume others."""
        self._is_due = True

    def drop_subsumed(self) -> None:
        """Drops what the newest checkpoints subsume; later, if that is not possible now."""
        if self._is_due:
            subsumed = select_subsumed(self._droppable(), retained_checkpoints(self._job.config))
            self._is_due = not self._drop(subsumed)

    def drop_all(self) -> None:
        """Drops all checkpoints, or logs why they stay."""
        self._drop(self._droppable())

    def _droppable(self) -> list[CheckpointRecord]:
        store = self._job.store
        return [record for record in store.all() if store.may_subsume(record)]

    def _drop(self, records: list[CheckpointRecord]) -> bool:
        if not records and not self._unused:
            return True
        store = self._job.store
        try:
            store.check_owner()
            for record in records:
                # The record first: a checkpoint that is found must be whole.
                store.subsume(record)
                self._unused += [record.metadata.path, *self._job.registry.unregister(record.id)]
                self._dropped(record)
            # A driver that claimed before the records were gone has seen them. One that claims from here on has not.
            store.check_owner()
        except SparkCkptError as e:
            _log.warning("%s: checkpoints that are not needed stay for now: %s", self._job.storage.location, e)
            return False
        self._job.cleaner.submit(in_location(path) for path in self._unused)
        self._unused = []
        return True
