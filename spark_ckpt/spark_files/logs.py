"""Spark's own files in a checkpoint location, read and written like Spark does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry, query_id_of
from spark_ckpt.spark_files.errors import SparkLogEntryExistsError, SparkLogFormatError
from spark_ckpt.spark_files.operator_metadata import OperatorMetadata
from spark_ckpt.storage import Storage, create_or_find

QUERY = "metadata"
"""File with the query id."""

STATE = "state"
"""Directory with one subdirectory per stateful operator."""


SOURCES = "sources"
"""Directory with the files of a query's sources (Spark: `StreamingCheckpointConstants.DIR_NAME_SOURCES`)."""


class BatchLog(Enum):
    """A log with one file per batch, named after the batch id (Spark: `HDFSMetadataLog`)."""

    OFFSETS = "offsets"
    COMMITS = "commits"


class SparkLog:
    """Spark's files in a checkpoint location. Entries are created exclusively. Only `replace_commit`
    changes one.

    Args:
        storage: storage of the checkpoint location.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def query_id(self) -> str:
        """Spark's id of the query.

        Raises:
            StateFileNotFoundError, StorageError: the file cannot be read.
            SparkLogFormatError: the file has no query id.
        """
        return query_id_of(self._storage.read(QUERY), self._storage.describe(QUERY))

    # ---- batches -----------------------------------------------------------------------------------------------------

    def batches(self, log: BatchLog) -> list[int]:
        """Batches in a log, ascending.

        Raises:
            StorageError: the log cannot be listed.
        """
        return _numbers(self._storage, log.value, is_directory=False)

    def offsets(self, batch_id: int) -> OffsetEntry:
        """Entry of a batch in the offset log.

        Raises:
            StateFileNotFoundError, StorageError: the entry cannot be read.
            SparkLogFormatError: the entry does not follow Spark's format.
        """
        name = entry_name(BatchLog.OFFSETS, batch_id)
        return OffsetEntry.decode(self._storage.read(name), self._storage.describe(name))

    def commit(self, batch_id: int) -> CommitEntry:
        """Entry of a batch in the commit log.

        Raises:
            StateFileNotFoundError, StorageError, SparkLogFormatError: as in `offsets`.
        """
        name = entry_name(BatchLog.COMMITS, batch_id)
        return CommitEntry.decode(self._storage.read(name), self._storage.describe(name))

    def temporary_files(self) -> list[str]:
        """Files of entries that a driver is writing, or was writing when it died, relative to the checkpoint location.

        Source of the names: Spark's `CheckpointFileManager.RenameBasedFSDataOutputStream`.

        Raises:
            StorageError: the logs cannot be listed.
        """
        return [
            f"{log.value}/{file.name}"
            for log in BatchLog
            for file in self._storage.list(log.value)
            if file.name.startswith(".") and file.name.endswith(".tmp")
        ]

    def add_offsets(self, batch_id: int, entry: OffsetEntry) -> None:
        """Adds the entry of a batch to the offset log, which begins the batch. An existing identical entry is no error.

        Raises:
            SparkLogEntryExistsError: the log has a different entry for the batch.
            StorageError: the entry could not be written, or the outcome is unknown.
        """
        self._add(entry_name(BatchLog.OFFSETS, batch_id), entry.encode())

    def add_commit(self, batch_id: int, entry: CommitEntry) -> None:
        """Adds the entry of a batch to the commit log, which ends the batch.

        Raises:
            SparkLogEntryExistsError, StorageError: as in `add_offsets`.
        """
        self._add(entry_name(BatchLog.COMMITS, batch_id), entry.encode())

    def replace_commit(self, batch_id: int, entry: CommitEntry) -> None:
        """Replaces the entry of a batch in the commit log.

        Raises:
            StorageError: the entry could not be written, or the outcome is unknown.
        """
        name = entry_name(BatchLog.COMMITS, batch_id)
        self._storage.delete(checksum_name(name))
        self._storage.write_atomic(name, entry.encode())

    # ---- operators ---------------------------------------------------------------------------------------------------

    def operators(self) -> list[int]:
        """Ids of the stateful operators, ascending.

        Raises:
            StorageError: the operators cannot be listed.
        """
        return _numbers(self._storage, STATE, is_directory=True)

    def partitions(self, operator_id: int) -> list[int]:
        """Partitions of an operator that have a directory, ascending: those read by the `statestore` source.

        Raises:
            StorageError: the partitions cannot be listed.
        """
        return _numbers(self._storage, operator_directory(operator_id), is_directory=True)

    def operator_metadata(self, operator_id: int, batch_id: int) -> OperatorMetadata | None:
        """Metadata of an operator as of a batch: the newest version 2 file up to the batch, or the version 1 file.

        Returns:
            The metadata; None if neither file exists.

        Raises:
            StateFileNotFoundError, StorageError, SparkLogFormatError: as in `offsets`.
        """
        versioned = self._versioned_until(operator_id, batch_id)
        name = versioned[-1] if versioned else first_metadata(operator_id)
        if not versioned and not self._storage.exists(name):
            return None
        return OperatorMetadata.decode(self._storage.read(name), self._storage.describe(name))

    def metadata_at_start(self, operator_id: int, batch_id: int) -> tuple[str, OperatorMetadata | None]:
        """Metadata of an operator as a start reads it after a batch: a directory of version 2 hides version 1.

        Returns:
            The name of the file or of its directory, relative to the checkpoint location, and the metadata; None if
            Spark cannot read it.

        Raises:
            StorageError: the storage does not answer.
        """
        directory = f"{operator_directory(operator_id)}/_metadata"
        name, version = first_metadata(operator_id), 1
        if any(entry.is_directory and entry.name == "v2" for entry in self._storage.list(directory)):
            versioned, version = self._versioned_until(operator_id, batch_id), 2
            if not versioned:
                return versioned_metadata_directory(operator_id), None
            name = versioned[-1]
        try:
            # Spark replaces what is no text.
            data = self._storage.read(name).decode(errors="replace").encode()
            metadata = OperatorMetadata.decode(data, self._storage.describe(name))
        except (StateFileNotFoundError, SparkLogFormatError):
            return name, None
        return name, metadata if metadata.version == version else None

    def add_operator_metadata(self, batch_id: int, metadata: OperatorMetadata) -> None:
        """Writes the metadata of an operator that applies from a batch on. Only version 2 has a file per batch.

        Raises:
            SparkLogEntryExistsError, StorageError: as in `add_offsets`.
        """
        assert metadata.version == 2
        self._add(f"{versioned_metadata_directory(metadata.operator_id)}/{batch_id}", metadata.encode())

    def metadata_until(self, operator_id: int, batch_id: int) -> dict[str, OperatorMetadata]:
        """Version 2 metadata of an operator up to a batch, by file name relative to the checkpoint location. Files that
        are damaged are left out.

        Raises:
            StateFileNotFoundError, StorageError: as in `offsets`.
        """
        names = self._versioned_until(operator_id, batch_id)
        result = {}
        for name in names:
            with suppress(SparkLogFormatError):
                result[name] = OperatorMetadata.decode(self._storage.read(name), self._storage.describe(name))
        return result

    def later_metadata(self, operator_id: int, batch_id: int) -> list[str]:
        """Version 2 metadata files of an operator after a batch, relative to the checkpoint location; ascending.

        Raises:
            StorageError: the files cannot be listed.
        """
        directory = versioned_metadata_directory(operator_id)
        return [f"{directory}/{number}" for number in self._versioned(operator_id) if number > batch_id]

    def _versioned(self, operator_id: int) -> list[int]:
        return _numbers(self._storage, versioned_metadata_directory(operator_id), is_directory=False)

    def _versioned_until(self, operator_id: int, batch_id: int) -> list[str]:
        directory = versioned_metadata_directory(operator_id)
        return [f"{directory}/{number}" for number in self._versioned(operator_id) if number <= batch_id]

    def _add(self, name: str, data: bytes) -> None:
        # A manually moved entry may have left its checksum file behind; Hadoop would verify our entry against it.
        self._storage.delete(checksum_name(name))
        if not create_or_find(self._storage, name, data):
            raise SparkLogEntryExistsError(self._storage.describe(name))


def entry_name(log: BatchLog, batch_id: int) -> str:
    """Name of a batch's file in a log, relative to the checkpoint location."""
    return f"{log.value}/{batch_id}"


def checksum_name(name: str) -> str:
    """Name of the checksum file that Hadoop's local file system writes next to a file."""
    directory, slash, file = name.rpartition("/")
    return f"{directory}{slash}.{file}.crc"


def operator_directory(operator_id: int) -> str:
    """Directory of an operator, relative to the checkpoint location."""
    return f"{STATE}/{operator_id}"


def make_partitions(storage: Storage, partitions: Mapping[int, int]) -> None:
    """Creates the directories of partitions, which the `statestore` source lists.

    Args:
        storage: storage of the checkpoint location.
        partitions: number of partitions of each operator.

    Raises:
        StorageError: a directory cannot be created.
    """
    for operator_id, number in partitions.items():
        for partition in range(number):
            storage.make_directory(f"{operator_directory(operator_id)}/{partition}")


def first_metadata(operator_id: int) -> str:
    """File of an operator's version 1 metadata."""
    return f"{operator_directory(operator_id)}/_metadata/metadata"


def versioned_metadata_directory(operator_id: int) -> str:
    """Directory of an operator's version 2 metadata: one file per batch that changed it."""
    return f"{operator_directory(operator_id)}/_metadata/v2"


def _numbers(storage: Storage, directory: str, *, is_directory: bool) -> list[int]:
    """Numeric names in a directory, ascending, as Spark lists its logs, and the `statestore` source its partitions."""
    entries = storage.list(directory)
    return sorted(int(entry.name) for entry in entries if entry.name.isdecimal() and entry.is_directory == is_directory)


@dataclass(frozen=True, slots=True)
class SparkBatches:
    """Batches in Spark's logs, ascending.

    Args:
        started: batches in the offset log.
        committed: batches in the commit log.
    """

    started: tuple[int, ...]
    committed: tuple[int, ...]

    @classmethod
    def of(cls, log: SparkLog) -> SparkBatches:
        """Lists the batches in Spark's logs. Commits are listed first, because offsets always precede their commit.

        Raises:
            StorageError: a log cannot be listed.
        """
        committed = tuple(log.batches(BatchLog.COMMITS))
        return cls(tuple(log.batches(BatchLog.OFFSETS)), committed)

    @property
    def last_committed(self) -> int:
        """Last batch committed by Spark; -1 if there is none."""
        return self.committed[-1] if self.committed else -1

    @property
    def start_needs(self) -> int:
        """Batch whose checkpoint a start restores; -1 if the query starts at batch 0. It is the last started batch if
        that is committed, otherwise the one before (`MicroBatchExecution.populateStartOffsets`)."""
        if not self.started:
            return -1
        last = self.started[-1]
        return last if self.last_committed == last else last - 1

    def repeats_after(self, batch_id: int) -> bool:
        """True if a start restores the checkpoint of a batch and repeats the next one, which was not committed."""
        return bool(self.started) and self.start_needs == batch_id != self.started[-1]

    def can_follow(self, batch_id: int) -> bool:
        """True if Spark can continue after a batch. It needs the batch's commit and offsets, and the offsets of the
        batch before (`MicroBatchExecution.populateStartOffsets`); entries of old batches are purged
        (`minBatchesToRetain`).
        """
        offsets = {batch_id, max(0, batch_id - 1)}
        return batch_id in self.committed and offsets <= set(self.started)
