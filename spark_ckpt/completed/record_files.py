"""The files of the completed-checkpoint log, and how a log is read that changes meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from spark_ckpt.completed.records import ClaimRecord, Record, decode_record
from spark_ckpt.errors import CorruptRecordError, StateFileNotFoundError, StorageError
from spark_ckpt.storage import Storage

LOG = "ckpt/completed"
"""Directory of the log in a checkpoint location."""

_RECORD_NAME = re.compile(r"([0-9]{20})\.json")
_MOST_READINGS = 20

_T = TypeVar("_T")


class RecordFiles:
    """A directory of records, `<id, 20 digits>.json`. Other files in it are left alone.

    Args:
        storage: of the checkpoint location.
        directory: name of the directory.
    """

    def __init__(self, storage: Storage, directory: str = LOG) -> None:
        self._storage = storage
        self.directory = directory

    def ids(self) -> list[int]:
        """The ids of the records, ascending.

        Raises:
            StorageError: the directory cannot be listed.
        """
        matches = (_RECORD_NAME.fullmatch(file.name) for file in self._storage.list(self.directory))
        return sorted(int(match[1]) for match in matches if match)

    def read(self, record_id: int) -> Record | None:
        """A record, or None if there is none of this id.

        Raises:
            CorruptRecordError: it is damaged.
            StorageError: it cannot be read.
        """
        try:
            data = self._storage.read(self.name(record_id))
        except StateFileNotFoundError:
            return None
        return decode_record(data, self.path(record_id), record_id)

    def read_all(self, known: Mapping[int, Record] | None = None) -> dict[int, Record]:
        """All records by id, ascending, without claims that came late (see `without_claims_that_came_late`).

        Args:
            known: records that were read before. Records never change, so these are not read again.

        Raises:
            CorruptRecordError: one is damaged, or the generations do not ascend.
            StorageError: the log cannot be read, or does not stand still.
        """
        seen = known or {}

        def read(record_id: int) -> Record | None:
            return seen.get(record_id) or self.read(record_id)

        records: dict[int, Record] = read_settled(self.ids, read, self._storage.describe(self.directory))
        records = without_claims_that_came_late(records)
        check_generations(records, self.path)
        return records

    def read_each(self) -> dict[int, Record | CorruptRecordError]:
        """All records by id, ascending, and in the place of a damaged one what is wrong with it.

        Raises:
            StorageError: the log cannot be read, or does not stand still.
        """

        def read(record_id: int) -> Record | CorruptRecordError | None:
            try:
                return self.read(record_id)
            except CorruptRecordError as e:
                return e

        return read_settled(self.ids, read, self._storage.describe(self.directory))

    def name(self, record_id: int) -> str:
        """Name of the file of a record."""
        return f"{self.directory}/{record_id:020d}.json"

    def path(self, record_id: int) -> str:
        """The same for messages: the whole path or URL."""
        return self._storage.describe(self.name(record_id))


def read_settled(list_ids: Callable[[], list[int]], read: Callable[[int], _T | None], place: str) -> dict[int, _T]:
    """Reads a log until two listings agree, since records come and go while it is read.

    Args:
        list_ids: the ids there are, ascending.
        read: what has an id, or None if it is gone.
        place: what is read, for the error.

    Raises:
        StorageError: no two listings agreed.
    """
    ids = list_ids()
    for _ in range(_MOST_READINGS):
        found = {i: read(i) for i in ids}
        again = list_ids()
        whole = {i: record for i, record in found.items() if record is not None}
        if again == ids and len(whole) == len(ids):
            return whole
        ids = again
    raise StorageError(place, "read", f"it changed during each of {_MOST_READINGS} readings")


def check_generations(records: Mapping[int, Record], path_of: Callable[[int], str]) -> None:
    """Makes sure that generations ascend with ids.

    Raises:
        CorruptRecordError: they do not.
    """
    last = 0
    for record_id, record in sorted(records.items()):
        if record.generation < last:
            raise CorruptRecordError(path_of(record_id), f"generation {record.generation} after generation {last}")
        last = record.generation


def without_claims_that_came_late(records: Mapping[int, Record]) -> dict[int, Record]:
    """Leaves out claims of drivers that never owned the log.

    A request to create one can be repeated after the owner has taken the id, gone on and dropped its record. Then an
    earlier generation follows the claim, which is impossible otherwise: the owner would have found its id taken. The
    driver deletes such a claim itself, unless it dies before.
    """
    kept: dict[int, Record] = {}
    below = float("inf")
    for record_id, record in sorted(records.items(), reverse=True):
        is_claim = isinstance(record, ClaimRecord)
        if not is_claim or record.generation < below:
            kept[record_id] = record
            # What comes before a claim is of an earlier generation, what comes before a checkpoint may be its claim.
            below = min(below, record.generation if is_claim else record.generation + 1)
    return dict(sorted(kept.items()))
