"""Files of the completed-checkpoint log, and consistent reads of a log under concurrent changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.completed.records import Record, decode_record
from spark_ckpt.completed.void_records import check_generations, without_void_records
from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage import Storage, until_stable

LOG = "ckpt/completed"
"""Directory of the log, relative to the checkpoint location."""

RECORD_NAME = re.compile(r"([0-9]{20})\.json")
"""Name of a record's file: the record's id."""

_T = TypeVar("_T")


class RecordFiles:
    """Directory of records, `<id, 20 digits>.json`. Ignores other files in it.

    Args:
        storage: storage of the checkpoint location.
        directory: name of the directory.
    """

    def __init__(self, storage: Storage, directory: str = LOG) -> None:
        self._storage = storage
        self._left_out: frozenset[int] = frozenset()
        self.directory = directory
        self.listed: list[int] = []
        """Ids found by the last listing, ascending."""

    def leave_out(self, ids: Iterable[int]) -> None:
        """Treats records as absent for the lifetime of this object."""
        self._left_out |= frozenset(ids)

    def ids(self) -> list[int]:
        """Ids of the records, ascending, without those left out.

        Raises:
            StorageError: the directory cannot be listed.
        """
        matches = (RECORD_NAME.fullmatch(file.name) for file in self._storage.list(self.directory))
        self.listed = sorted({int(match[1]) for match in matches if match} - self._left_out)
        return self.listed

    def read(self, record_id: int) -> Record | None:
        """Reads a record; None if none has this id.

        Raises:
            DamagedRecordError: the record is damaged.
            StorageError: the record cannot be read.
        """
        return self.decode(record_id, self._storage.read_many([self.name(record_id)])[self.name(record_id)])

    def decode(self, record_id: int, found: bytes | StorageError) -> Record | None:
        """Decodes the result of reading a record's file; None if the file does not exist.

        Raises:
            DamagedRecordError: the record is damaged.
            StorageError: the file could not be read.
        """
        if isinstance(found, StateFileNotFoundError):
            return None
        if isinstance(found, StorageError):
            raise found
        return decode_record(found, self.path(record_id), record_id)

    def _read_many(self, record_ids: Collection[int]) -> dict[int, bytes | StorageError]:
        names = {self.name(record_id): record_id for record_id in record_ids}
        return {names[name]: found for name, found in self._storage.read_many(list(names)).items()}

    def read_all(self, known: Mapping[int, Record] | None = None) -> dict[int, Record]:
        """Reads the records that count, by ascending id (see `without_void_records`).

        Args:
            known: records read before. Records never change, so these are not read again.

        Raises:
            DamagedRecordError: a record is damaged, or the generations do not ascend.
            StorageError: the log cannot be read, or keeps changing.
        """
        seen = dict(known or {})

        def read(ids: Collection[int]) -> dict[int, Record | None]:
            for record_id, found in self._read_many([i for i in ids if i not in seen]).items():
                if (record := self.decode(record_id, found)) is not None:
                    seen[record_id] = record
            return {i: seen.get(i) for i in ids}

        records: dict[int, Record] = read_settled(self.ids, read, self._storage.describe(self.directory))
        records = without_void_records(records)
        check_generations(records, self.path)
        return records

    def read_each(self) -> dict[int, Record | DamagedRecordError]:
        """Reads all records by ascending id, with the error in place of each damaged one.

        Raises:
            StorageError: the log cannot be read, or keeps changing.
        """

        def decode(record_id: int, found: bytes | StorageError) -> Record | DamagedRecordError | None:
            try:
                return self.decode(record_id, found)
            except DamagedRecordError as e:
                return e

        def read(ids: Collection[int]) -> dict[int, Record | DamagedRecordError | None]:
            return {i: decode(i, found) for i, found in self._read_many(ids).items()}

        return read_settled(self.ids, read, self._storage.describe(self.directory))

    def name(self, record_id: int) -> str:
        """Name of a record's file."""
        return f"{self.directory}/{record_id:020d}.json"

    def path(self, record_id: int) -> str:
        """Path or URL of a record's file, for messages."""
        return self._storage.describe(self.name(record_id))


def read_settled(
    list_ids: Callable[[], list[int]], read: Callable[[Collection[int]], Mapping[int, _T | None]], log: str
) -> dict[int, _T]:
    """Reads a log until two listings agree, since records appear and disappear during the read.

    Args:
        list_ids: lists the existing ids, ascending.
        read: reads the records with these ids; None for a deleted one.
        log: name of the log, for the error message.

    Raises:
        StorageError: no two listings agreed.
    """
    ids = list_ids()

    def read_once() -> dict[int, _T] | None:
        nonlocal ids
        found, before = read(ids), ids
        ids = list_ids()
        whole = {i: record for i in before if (record := found[i]) is not None}
        return whole if ids == before and len(whole) == len(ids) else None

    return until_stable(read_once, log)
