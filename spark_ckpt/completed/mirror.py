"""File mirror of a store whose records live elsewhere, for readers that have only the file system."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from spark_ckpt.completed.record_files import RecordFiles
from spark_ckpt.completed.records import Record, encode_record
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.storage import Storage, create_or_find

_log = logging.getLogger(__name__)


class Mirror:
    """Best-effort copy of the authoritative records, as files of a log.

    The copy may lag, but is always complete up to some id, and never ahead of the store.

    Args:
        storage: storage of the checkpoint location.
    """

    def __init__(self, storage: Storage) -> None:
        self.location = storage.location
        """Name of the checkpoint location."""
        self._storage = storage
        self._files = RecordFiles(storage)
        self._there: set[int] | None = None  # None while unknown

    @property
    def is_current(self) -> bool:
        """True if the files showed all drops when `follow` was last called."""
        return self._there is not None

    def read(self) -> dict[int, Record]:
        """Records in the files.

        Raises:
            DamagedRecordError, StorageError: they cannot be read.
        """
        return self._files.read_all()

    def follow(self, truth: Mapping[int, Record], dropped: int | None = None) -> None:
        """Creates missing files, in the order of ids, and deletes the files of dropped records.

        Never raises: the next call catches up on whatever this one could not do.

        Args:
            truth: records known to the owner.
            dropped: id of the record just dropped by the owner, possibly the newest.
        """
        there, self._there = self._there, None
        try:
            if there is None:
                there = set(self._files.ids())
            for record_id in sorted(truth.keys() - there):
                create_or_find(self._storage, self._files.name(record_id), encode_record(truth[record_id]))
            newest = max(truth, default=0)
            for record_id in sorted(there - truth.keys()):
                # Records above belong to a driver that has taken over.
                if record_id < newest or record_id == dropped:
                    self._storage.delete(self._files.name(record_id))
        except SparkCkptError as e:
            _log.warning("%s lags behind: %s", self._storage.describe(self._files.directory), e)
            return
        self._there = set(truth)
