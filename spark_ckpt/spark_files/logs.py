"""Spark's own files in a checkpoint location, read and written as Spark does it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry, query_id_of
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata
from spark_ckpt.storage import Storage, create_or_find

QUERY = "metadata"
"""The file with the query's id."""

STATE = "state"
"""The directory with one directory for each stateful operator."""


SOURCES = "sources"
"""Directory of what the sources of a query keep (Spark: `StreamingCheckpointConstants.DIR_NAME_SOURCES`)."""


class BatchLog(Enum):
    """A log with one file per batch, named by its number (Spark: `HDFSMetadataLog`)."""

    OFFSETS = "offsets"
    COMMITS = "commits"


class SparkLog:
    """Spark's files. Entries are created only where there is none, and never changed.

    Args:
        storage: of the checkpoint location.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def query_id(self) -> str:
        """Spark's id of the query.

        Raises:
            StateFileNotFoundError, StorageError: it cannot be read.
            SparkLogFormatError: the file has none.
        """
        return query_id_of(self._storage.read(QUERY), self._storage.describe(QUERY))

    # ---- batches -----------------------------------------------------------------------------------------------------

    def batches(self, log: BatchLog) -> list[int]:
        """The batches that a log has, ascending.

        Raises:
            StorageError: it cannot be listed.
        """
        return _numbers(self._storage, log.value, is_directory=False)

    def offsets(self, batch_id: int) -> OffsetEntry:
        """The entry of the offset log for a batch.

        Raises:
            StateFileNotFoundError, StorageError: it cannot be read.
            SparkLogFormatError: it is not what Spark writes.
        """
        name = entry_name(BatchLog.OFFSETS, batch_id)
        return OffsetEntry.decode(self._storage.read(name), self._storage.describe(name))

    def commit(self, batch_id: int) -> CommitEntry:
        """The entry of the commit log for a batch.

        Raises:
            StateFileNotFoundError, StorageError, SparkLogFormatError: as in `offsets`.
        """
        name = entry_name(BatchLog.COMMITS, batch_id)
        return CommitEntry.decode(self._storage.read(name), self._storage.describe(name))

    def add_offsets(self, batch_id: int, entry: OffsetEntry) -> None:
        """Begins a batch. An entry that is there already and says the same counts as added.

        Raises:
            SparkLogEntryExistsError: the log has another entry for the batch.
            StorageError: it could not be written, or the storage does not say whether it was.
        """
        self._add(entry_name(BatchLog.OFFSETS, batch_id), entry.encode())

    def add_commit(self, batch_id: int, entry: CommitEntry) -> None:
        """Ends a batch.

        Raises:
            SparkLogEntryExistsError, StorageError: as in `add_offsets`.
        """
        self._add(entry_name(BatchLog.COMMITS, batch_id), entry.encode())

    # ---- operators ---------------------------------------------------------------------------------------------------

    def operators(self) -> list[int]:
        """The numbers of the stateful operators, ascending.

        Raises:
            StorageError: they cannot be listed.
        """
        return _numbers(self._storage, STATE, is_directory=True)

    def partitions(self, operator_id: int) -> list[int]:
        """The partitions of an operator that have a folder, ascending: those that the `statestore` source reads.

        Raises:
            StorageError: they cannot be listed.
        """
        return _numbers(self._storage, operator_directory(operator_id), is_directory=True)

    def operator_metadata(self, operator_id: int, batch_id: int) -> OperatorMetadata | None:
        """Metadata of an operator at a batch: the newest of version 2 up to it, or the one file of version 1.

        Returns:
            None if there is neither.

        Raises:
            StateFileNotFoundError, StorageError, SparkLogFormatError: as in `offsets`.
        """
        directory = f"{operator_directory(operator_id)}/_metadata"
        versioned = [number for number in self._versioned(operator_id) if number <= batch_id]
        name = f"{directory}/v2/{versioned[-1]}" if versioned else f"{directory}/metadata"
        if not versioned and not self._storage.exists(name):
            return None
        return OperatorMetadata.decode(self._storage.read(name), self._storage.describe(name))

    def add_operator_metadata(self, batch_id: int, metadata: OperatorMetadata) -> None:
        """Writes what holds of an operator from a batch on. Only version 2 has a file per batch.

        Raises:
            SparkLogEntryExistsError, StorageError: as in `add_offsets`.
        """
        assert metadata.version == 2
        self._add(f"{versioned_metadata_directory(metadata.operator_id)}/{batch_id}", metadata.encode())

    def metadata_until(self, operator_id: int, batch_id: int) -> dict[str, OperatorMetadata]:
        """The files, relative to the location, with what holds of an operator up to a batch; only those of version 2.

        Raises:
            StateFileNotFoundError, StorageError, SparkLogFormatError: as in `offsets`.
        """
        directory = versioned_metadata_directory(operator_id)
        names = [f"{directory}/{number}" for number in self._versioned(operator_id) if number <= batch_id]
        return {name: OperatorMetadata.decode(self._storage.read(name), self._storage.describe(name)) for name in names}

    def later_metadata(self, operator_id: int, batch_id: int) -> list[str]:
        """The files, relative to the location, with what holds of an operator only after a batch; ascending.

        Raises:
            StorageError: they cannot be listed.
        """
        directory = versioned_metadata_directory(operator_id)
        return [f"{directory}/{number}" for number in self._versioned(operator_id) if number > batch_id]

    def _versioned(self, operator_id: int) -> list[int]:
        return _numbers(self._storage, versioned_metadata_directory(operator_id), is_directory=False)

    def _add(self, name: str, data: bytes) -> None:
        # An entry that was moved away by hand may have left it, and Hadoop would hold ours against it.
        self._storage.delete(checksum_name(name))
        if not create_or_find(self._storage, name, data):
            raise SparkLogEntryExistsError(self._storage.describe(name))


def entry_name(log: BatchLog, batch_id: int) -> str:
    """Name of the file of a batch in a log, relative to the checkpoint location."""
    return f"{log.value}/{batch_id}"


def checksum_name(name: str) -> str:
    """Name of the file with the checksums of another one, which Hadoop's local file system puts beside it."""
    directory, slash, file = name.rpartition("/")
    return f"{directory}{slash}.{file}.crc"


def operator_directory(operator_id: int) -> str:
    """Directory of an operator, relative to the checkpoint location."""
    return f"{STATE}/{operator_id}"


def versioned_metadata_directory(operator_id: int) -> str:
    """Directory with what Spark knew of an operator from certain batches on, a file for each of these."""
    return f"{operator_directory(operator_id)}/_metadata/v2"


def _numbers(storage: Storage, directory: str, *, is_directory: bool) -> list[int]:
    """Numbers that name an entry of a directory, as Spark lists its logs and the `statestore` source its partitions."""
    entries = storage.list(directory)
    return sorted(int(entry.name) for entry in entries if entry.name.isdecimal() and entry.is_directory == is_directory)


@dataclass(frozen=True, slots=True)
class SparkBatches:
    """The batches that Spark's logs have, ascending.

    Args:
        started: those of the offset log.
        committed: those of the commit log.
    """

    started: tuple[int, ...]
    committed: tuple[int, ...]

    @classmethod
    def of(cls, log: SparkLog) -> SparkBatches:
        """Batches of Spark's logs. Commits are listed first, since each of them has its offsets.

        Raises:
            StorageError: a log cannot be listed.
        """
        committed = tuple(log.batches(BatchLog.COMMITS))
        return cls(tuple(log.batches(BatchLog.OFFSETS)), committed)

    @property
    def last_committed(self) -> int:
        """The last batch that Spark has committed; -1 if there is none."""
        return self.committed[-1] if self.committed else -1

    @property
    def start_needs(self) -> int:
        """The batch whose checkpoint a start begins from, -1 if it begins with batch 0
        (`MicroBatchExecution.populateStartOffsets`): the last one begun if that is committed, else the one before."""
        if not self.started:
            return -1
        last = self.started[-1]
        return last if self.last_committed == last else last - 1

    def can_follow(self, batch_id: int) -> bool:
        """True if Spark can continue after a batch: it reads its commit, its offsets, and those of the batch before
        (`MicroBatchExecution.populateStartOffsets`). Entries of old batches are purged (`minBatchesToRetain`).
        """
        offsets = {batch_id, max(0, batch_id - 1)}
        return batch_id in self.committed and offsets <= set(self.started)
