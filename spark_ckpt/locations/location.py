"""From what a user names to checkpoints: our locations, Flink's directories, and single metadata files."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from typing import NoReturn

import fsspec

from spark_ckpt.completed import LOG, CheckpointRecord
from spark_ckpt.coordinator.directory import list_completed
from spark_ckpt.coordinator.layout import CKPT, checkpoint_of_directory
from spark_ckpt.errors import CheckpointNotFoundError, DamagedCheckpointError
from spark_ckpt.locations.errors import ForeignLocationError, LocationNotFoundError
from spark_ckpt.locations.file_system import file_system_of, reading, storage_at
from spark_ckpt.metadata import METADATA_FILE_NAME, CheckpointMetadata, loads
from spark_ckpt.operations.snapshot import RECORD as SAVEPOINT_RECORD
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_FLINK_CHECKPOINT = re.compile(r"chk-([0-9]+)")


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint that a user named.

    Args:
        path: its `_metadata`, as a path or URL.
        size: bytes of that file.
        metadata: what it says.
        record: its record, if it is one of ours that was named by its location.
    """

    path: str
    size: int
    metadata: CheckpointMetadata
    record: CheckpointRecord | None = None


def completed_checkpoints(location: str) -> list[CheckpointRecord]:
    """The completed checkpoints of a checkpoint location, ascending by id; none if no batch has completed yet.

    Raises:
        LocationNotFoundError: there is nothing.
        ForeignLocationError: it is no checkpoint location of a query with our state store.
        CorruptRecordError: a record is damaged.
        StorageError: the storage does not answer.
    """
    return _completed(storage_of(location))


def storage_of(location: str) -> Storage:
    """The storage of a checkpoint location of ours.

    Raises:
        LocationNotFoundError, ForeignLocationError, StorageError: as in `completed_checkpoints`.
    """
    file_system, root = file_system_of(location)
    if not _is_ours(file_system, root, location):
        _explain_foreign(file_system, root, location)
    return storage_at(location)


def storage_of_copy(place: str, checkpoint_id: int | None) -> tuple[Storage, int | None]:
    """The storage of a savepoint or checkpoint location, and the checkpoint of it that is meant.

    Args:
        place: either of both, or the directory `ckpt/chk-<id>` of a checkpoint in a location.
        checkpoint_id: the checkpoint, if the place does not say; None for any.

    Raises:
        CheckpointNotFoundError: the place is that of another checkpoint.
        LocationNotFoundError, ForeignLocationError, StorageError: as in `completed_checkpoints`.
    """
    file_system, root = file_system_of(place)
    with reading(place):
        if file_system.isfile(f"{root}/{SAVEPOINT_RECORD}"):
            return storage_at(place), checkpoint_id
    parent, _, name = place.rstrip("/").rpartition("/")
    named = checkpoint_of_directory(name)
    if named is None or parent.rpartition("/")[2] != CKPT:
        return storage_of(place), checkpoint_id
    if checkpoint_id is not None and checkpoint_id != named:
        raise CheckpointNotFoundError(place, checkpoint_id, [named])
    return storage_of(parent.rpartition("/")[0] or "."), named


def find_checkpoint(place: str, checkpoint_id: int | None = None) -> FoundCheckpoint:
    """The checkpoint that a user means.

    Args:
        place: a checkpoint location of ours, the directory of one Flink checkpoint or savepoint, that of a Flink job
            with several, or a `_metadata` file. A local path or any URL that fsspec serves.
        checkpoint_id: which one, where there are several; the newest unless given.

    Raises:
        LocationNotFoundError: there is nothing.
        ForeignLocationError: there is no checkpoint.
        CheckpointNotFoundError: there is none of this id.
        MetadataFormatError: its metadata is damaged, or of a version that is not supported.
        DamagedCheckpointError: the metadata is not what the record says.
        CorruptRecordError: a record is damaged.
        StorageError: the storage does not answer.
    """
    place = place.rstrip("/") or "/"
    file_system, root = file_system_of(place)
    if _is_ours(file_system, root, place):
        return _ours(storage_at(place), place, checkpoint_id)
    with reading(place):
        name = _metadata_name(file_system, place, root, checkpoint_id)
        content = file_system.cat_file(f"{root}/{name}" if name else root)
    path = f"{place}/{name}" if name else place
    metadata = loads(content, path)
    if checkpoint_id is not None and checkpoint_id != metadata.checkpoint_id:
        raise CheckpointNotFoundError(path, checkpoint_id, [metadata.checkpoint_id])
    return FoundCheckpoint(path, len(content), metadata)


def _ours(storage: Storage, location: str, checkpoint_id: int | None) -> FoundCheckpoint:
    by_id = {record.id: record for record in _completed(storage)}
    if not by_id:
        raise ForeignLocationError(location, "no checkpoint has completed here yet")
    wanted = max(by_id) if checkpoint_id is None else checkpoint_id
    if (record := by_id.get(wanted)) is None:
        raise CheckpointNotFoundError(location, wanted, sorted(by_id))
    name = f"ckpt/{record.metadata.path}"
    path = storage.describe(name)
    content = storage.read(name)
    if hashlib.sha256(content).hexdigest() != record.metadata.sha256:
        way_out = "Restore the file from a backup; to see what it holds all the same, name the file"
        raise DamagedCheckpointError(path, record.id, "its digest is not the one that was recorded", None, way_out)
    return FoundCheckpoint(path, len(content), loads(content, path), record)


def _metadata_name(file_system: fsspec.AbstractFileSystem, place: str, root: str, checkpoint_id: int | None) -> str:
    """The metadata file that is meant, relative to `root`; empty if `root` is one itself."""
    if file_system.isfile(root):
        return ""
    if file_system.isfile(f"{root}/{METADATA_FILE_NAME}"):
        return METADATA_FILE_NAME
    if not file_system.exists(root):
        raise LocationNotFoundError(place)
    # A job's directory in Flink: a directory chk-<id> for each checkpoint, which has metadata once it is complete.
    directories = {
        int(match[1]): match[0] for match in map(_FLINK_CHECKPOINT.fullmatch, _names(file_system, root)) if match
    }
    names = {i: f"{directory}/{METADATA_FILE_NAME}" for i, directory in sorted(directories.items())}
    complete = {i: name for i, name in names.items() if file_system.isfile(f"{root}/{name}")}
    if not complete:
        reason = "neither a checkpoint location of spark-ckpt nor a Flink checkpoint: it holds no _metadata"
        raise ForeignLocationError(place, reason)
    wanted = max(complete) if checkpoint_id is None else checkpoint_id
    if wanted not in complete:
        raise CheckpointNotFoundError(place, wanted, list(complete))
    return complete[wanted]


def _names(file_system: fsspec.AbstractFileSystem, directory: str) -> list[str]:
    return [path.rstrip("/").rpartition("/")[2] for path in file_system.ls(directory, detail=False)]


def _is_ours(file_system: fsspec.AbstractFileSystem, root: str, location: str) -> bool:
    """Whether there is a log, or what a query with the store `standalone` leaves."""
    with reading(location):
        if file_system.isdir(f"{root}/{LOG}"):
            return True
        directory = f"{root}/{CKPT}"
        if not file_system.isdir(directory):
            return False
        return any(checkpoint_of_directory(name) is not None for name in _names(file_system, directory))


def _completed(storage: Storage) -> list[CheckpointRecord]:
    found = list_completed(storage)
    for damaged in found.set_aside:
        _log.warning("%s", damaged)
    return list(found.records)


def _explain_foreign(file_system: fsspec.AbstractFileSystem, root: str, location: str) -> NoReturn:
    """Raises the error for a location without a log."""
    with reading(location):
        if not file_system.exists(root):
            raise LocationNotFoundError(location)
        names = _names(file_system, root) if file_system.isdir(root) else []
    if {"offsets", "commits"} <= set(names):
        reason = (
            "a checkpoint location of Spark without checkpoints of spark-ckpt: its query has run with another state "
            "store, or has no stateful operator"
        )
    else:
        reason = "no checkpoint location of a query with spark-ckpt: it has no ckpt/completed"
    raise ForeignLocationError(location, reason)
