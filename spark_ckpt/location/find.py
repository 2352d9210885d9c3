"""Lookup of checkpoints by location: our locations, Flink's directories, and single metadata files."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import fsspec

from spark_ckpt.checkpoint.batch import SPARK_BATCH
from spark_ckpt.checkpoint.layout import CKPT, checkpoint_of_directory, in_location
from spark_ckpt.completed import LOG, CheckpointRecord
from spark_ckpt.errors import DamagedCheckpointError, SavepointLocationError
from spark_ckpt.location.errors import CheckpointNotFoundError, ForeignLocationError, LocationNotFoundError
from spark_ckpt.location.file_system import file_system_of, open_directory, reading
from spark_ckpt.location.listing import list_completed, recorded
from spark_ckpt.location.missing import may_be_ours
from spark_ckpt.location.savepoint import SAVEPOINT_RECORD, read_savepoint_record
from spark_ckpt.metadata import METADATA_FILE_NAME, CheckpointMetadata, loads
from spark_ckpt.metadata.decoder import has_magic_number
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_NONE_YET = "no checkpoint has completed yet"
_WAY_OUT = "Restore the file from a backup. To inspect it anyway, pass the path of the file"
_LOG_NAME = LOG.removeprefix(f"{CKPT}/")
_FLINK_CHECKPOINT = re.compile(r"chk-([0-9]+)")


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint selected by the user.

    Args:
        path: its `_metadata`, as a path or URL.
        size: bytes of that file.
        metadata: content of that file.
        record: its record, if it was found in a checkpoint location of ours.
    """

    path: str
    size: int
    metadata: CheckpointMetadata
    record: CheckpointRecord | None = None


class CheckpointLocation:
    """A location given by the user, resolved once, with at most one client of its file system.

    It may be the checkpoint location of a query, a savepoint, the directory of a Flink checkpoint, the directory of a
    Flink job with several checkpoints, or a `_metadata` file.

    Attributes:
        path: the location as given: a local path or any URL that fsspec supports.
        storage: the storage in that directory.
    """

    def __init__(self, path: str, storage: Storage, files: tuple[fsspec.AbstractFileSystem, str] | None) -> None:
        self.path = path
        self.storage = storage
        self._shared_files = files  # with the client of `storage`

    @classmethod
    def open(cls, path: str) -> CheckpointLocation:
        """The location at a path or URL. Reads nothing.

        Raises:
            S3fsNotFoundError, HadoopNotFoundError, FileSystemPackageError, StorageError: as in `file_system_of`.
        """
        return cls(path, *open_directory(path))

    def checkpoints(self) -> list[CheckpointRecord]:
        """The completed checkpoints, ascending by id; empty if no batch has completed yet. A savepoint has one.

        Raises:
            CheckpointsMissingError: no checkpoint exists, but Spark's logs show earlier ones.
            LocationNotFoundError: the location does not exist.
            ForeignLocationError: not the checkpoint location of a query with our state store.
            DamagedRecordError: a record is damaged.
            StorageError: the storage does not answer.
        """
        if self.is_savepoint:
            return [read_savepoint_record(self.storage)]
        return self._completed(self.of_query())

    @cached_property
    def is_savepoint(self) -> bool:
        """True for a complete savepoint.

        Raises:
            StorageError: the storage does not answer.
        """
        if self._shared_files is None:
            return self.storage.exists(SAVEPOINT_RECORD)
        file_system, root = self._shared_files
        with reading(self.path):
            return bool(file_system.isfile(f"{root}/{SAVEPOINT_RECORD}"))

    def of_query(self) -> Storage:
        """The storage of the checkpoint location of a query with our state store.

        Raises:
            LocationNotFoundError, ForeignLocationError, StorageError: as in `checkpoints`.
        """
        if not self._has_checkpoints and not may_be_ours(self.storage):
            self._explain_foreign()
        return self.storage

    def copy_source(self, checkpoint_id: int | None) -> tuple[Storage, int | None]:
        """The storage of a savepoint or checkpoint location, and the selected checkpoint. A directory `ckpt/chk-<id>`
        selects that checkpoint of the location above.

        Args:
            checkpoint_id: the checkpoint; None for any.

        Raises:
            CheckpointNotFoundError: the directory is that of another checkpoint.
            LocationNotFoundError, ForeignLocationError, StorageError: as in `checkpoints`.
        """
        if self.is_savepoint:
            return self.storage, checkpoint_id
        if (own := self._own_directory) is None:
            return self.of_query(), checkpoint_id
        location, named = own
        if checkpoint_id is not None and checkpoint_id != named:
            raise CheckpointNotFoundError(self.path, checkpoint_id, [named])
        return CheckpointLocation.open(location).of_query(), named

    def checkpoint_of(self, record: CheckpointRecord) -> FoundCheckpoint:
        """The checkpoint of a record that `checkpoints` returned.

        Raises:
            StateFileNotFoundError: its metadata is gone; a running query may have subsumed it meanwhile.
            MetadataFormatError, DamagedCheckpointError, StorageError: as in `find`.
        """
        path = record.metadata.path
        return self._recorded(record, path if self.is_savepoint else in_location(path))

    def find(self, checkpoint_id: int | None = None) -> FoundCheckpoint:
        """The selected checkpoint.

        Args:
            checkpoint_id: the checkpoint; by default the newest.

        Raises:
            LocationNotFoundError: the location does not exist.
            ForeignLocationError: the location has no checkpoint.
            CheckpointNotFoundError: no checkpoint has this id.
            MetadataFormatError: its metadata is damaged, or of an unsupported version.
            DamagedCheckpointError: the metadata does not match the record.
            DamagedRecordError: a record is damaged.
            StorageError: the storage does not answer.
        """
        if self._has_checkpoints:
            return self._find_recorded(checkpoint_id)
        location = self.path.rstrip("/") or "/"
        file_system, root = self._files
        with reading(location):
            name = self._metadata_name(checkpoint_id)
            content = file_system.cat_file(f"{root}/{name}" if name else root)
        path = f"{location}/{name}" if name else location
        metadata = loads(content, path)
        if checkpoint_id is not None and checkpoint_id != metadata.checkpoint_id:
            raise CheckpointNotFoundError(path, checkpoint_id, [metadata.checkpoint_id])
        return FoundCheckpoint(path, len(content), metadata)

    def find_of_flink(self, checkpoint_id: int | None = None) -> FoundCheckpoint | None:
        """The selected checkpoint or savepoint of a Flink job; None if the location belongs to a query of Spark.

        Args:
            checkpoint_id: the checkpoint; by default the newest.

        Raises:
            CheckpointNotFoundError, MetadataFormatError, StorageError: as in `find`.
        """
        if not self._may_be_of_flink:
            return None
        found = self.find(checkpoint_id)
        return None if any(state.name == SPARK_BATCH for state in found.metadata.master_states) else found

    def ids_of_flink(self) -> list[int]:
        """Ids of the complete checkpoints in the directory of a Flink job, ascending; empty for other locations."""
        file_system, root = self._files
        with reading(self.path):
            if not file_system.isdir(root) or file_system.isfile(f"{root}/{METADATA_FILE_NAME}"):
                return []
            return list(self._complete_of_flink())

    @cached_property
    def _may_be_of_flink(self) -> bool:
        """True if the location is none of a query, and has metadata."""
        if self.is_savepoint or self._has_checkpoints or self._own_directory is not None:
            return False
        file_system, root = self._files
        with reading(self.path):
            if file_system.isfile(root):
                return root.endswith(METADATA_FILE_NAME) or has_magic_number(file_system.cat_file(root, 0, 4))
            if file_system.isfile(f"{root}/{METADATA_FILE_NAME}"):
                return True
            return file_system.isdir(root) and bool(self._complete_of_flink())

    @property
    def _own_directory(self) -> tuple[str, int] | None:
        """Location and checkpoint, if this is the directory `ckpt/chk-<id>` of one of ours."""
        parent, _, name = self.path.rstrip("/").rpartition("/")
        named = checkpoint_of_directory(name)
        if named is None or parent.rpartition("/")[2] != CKPT:
            return None
        return parent.rpartition("/")[0] or ".", named

    # ---- checkpoints of ours -----------------------------------------------------------------------------------------

    @cached_property
    def _has_checkpoints(self) -> bool:
        """True if a log or directories of checkpoints exist; the store `standalone` writes no log."""
        names = self._names_in_ckpt()
        return _LOG_NAME in names or any(checkpoint_of_directory(name) is not None for name in names)

    def _names_in_ckpt(self) -> list[str]:
        if self._shared_files is None:
            return [entry.name for entry in self.storage.list(CKPT)]
        file_system, root = self._shared_files
        with reading(self.path):
            # Some fsspec file systems cannot list.
            return _names(file_system, f"{root}/{CKPT}") if file_system.isdir(f"{root}/{CKPT}") else []

    def _completed(self, storage: Storage) -> list[CheckpointRecord]:
        found = list_completed(storage)
        for damaged in found.damaged:
            _log.warning("%s", damaged)
        return list(found.records)

    def _find_recorded(self, checkpoint_id: int | None) -> FoundCheckpoint:
        location = self.path.rstrip("/") or "/"
        records = self._completed(self.storage)
        if checkpoint_id is None and not records:
            raise ForeignLocationError(location, _NONE_YET)
        record = records[-1] if checkpoint_id is None else recorded(self.storage, records, checkpoint_id)
        return self._recorded(record, in_location(record.metadata.path))

    def _recorded(self, record: CheckpointRecord, name: str) -> FoundCheckpoint:
        path = self.storage.describe(name)
        content = self.storage.read(name)
        if reason := record.metadata.mismatch(content):
            raise DamagedCheckpointError(path, record.id, reason, None, _WAY_OUT)
        return FoundCheckpoint(path, len(content), loads(content, path), record)

    # ---- checkpoints of Flink ----------------------------------------------------------------------------------------

    @cached_property
    def _files(self) -> tuple[fsspec.AbstractFileSystem, str]:
        return self._shared_files or file_system_of(self.path)

    def _metadata_name(self, checkpoint_id: int | None) -> str:
        """The selected metadata file, relative to the location; empty if the location is a file."""
        location = self.path.rstrip("/") or "/"
        file_system, root = self._files
        if file_system.isfile(root):
            return ""
        if file_system.isfile(f"{root}/{METADATA_FILE_NAME}"):
            return METADATA_FILE_NAME
        if not file_system.exists(root):
            raise LocationNotFoundError(location)
        if not (complete := self._complete_of_flink()):
            if may_be_ours(self.storage):
                self._completed(self.storage)
                raise ForeignLocationError(location, _NONE_YET)
            reason = "neither a checkpoint location of spark-ckpt nor a Flink checkpoint: it has no _metadata"
            raise ForeignLocationError(location, reason)
        target_id = max(complete) if checkpoint_id is None else checkpoint_id
        if target_id not in complete:
            raise CheckpointNotFoundError(location, target_id, list(complete))
        return complete[target_id]

    def _complete_of_flink(self) -> dict[int, str]:
        """Metadata files in the directory of a Flink job, relative to it. It has a directory chk-<id> per checkpoint,
        with metadata once it is complete."""
        file_system, root = self._files
        matches = map(_FLINK_CHECKPOINT.fullmatch, _names(file_system, root))
        names = {int(match[1]): f"{match[0]}/{METADATA_FILE_NAME}" for match in matches if match}
        return {i: name for i, name in sorted(names.items()) if file_system.isfile(f"{root}/{name}")}

    def _explain_foreign(self) -> NoReturn:
        """Raises the error for a location without a log."""
        file_system, root = self._files
        with reading(self.path):
            if not file_system.exists(root):
                raise LocationNotFoundError(self.path)
            names = _names(file_system, root) if file_system.isdir(root) else []
        if SAVEPOINT_RECORD in names:
            raise SavepointLocationError(self.path)
        if _FLINK_CHECKPOINT.fullmatch(self.path.rstrip("/").rpartition("/")[2]):
            reason = (
                f"the directory of a checkpoint without its {METADATA_FILE_NAME}: the checkpoint was never complete, "
                "or the file is lost"
            )
        elif {"offsets", "commits"} <= set(names):
            reason = (
                "a checkpoint location of Spark without checkpoints of spark-ckpt: its query uses another state store "
                "or has no stateful operator"
            )
        else:
            reason = "not a checkpoint location of a query with spark-ckpt: it has no ckpt/completed"
        raise ForeignLocationError(self.path, reason)


def _names(file_system: fsspec.AbstractFileSystem, directory: str) -> list[str]:
    return [path.rstrip("/").rpartition("/")[2] for path in file_system.ls(directory, detail=False)]
