"""One completed checkpoint as something to copy: in a checkpoint location, or in a savepoint.

A savepoint lies like a checkpoint location, with what one checkpoint needs:

    _metadata            of the checkpoint, with paths that count from here
    savepoint.json       its record; written last, so a savepoint that lacks it is not complete
    ckpt/shared/         the state files
    metadata, offsets/, commits/, sources/, state/       Spark's files
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_ckpt.completed import CheckpointRecord, decode_record
from spark_ckpt.coordinator.directory import list_completed
from spark_ckpt.coordinator.layout import CKPT, in_location
from spark_ckpt.coordinator.loading import CheckpointState, read_metadata, state_of
from spark_ckpt.errors import CheckpointNotFoundError, CorruptRecordError
from spark_ckpt.metadata import METADATA_FILE_NAME, CheckpointMetadata, RelativeFileStateHandle
from spark_ckpt.metadata.parts import with_parts
from spark_ckpt.operations.agreement import SparkBatches
from spark_ckpt.operations.errors import NoCheckpointError, NotCommittedError
from spark_ckpt.operations.spark_log import SparkLog
from spark_ckpt.storage import Storage

RECORD = "savepoint.json"
"""The record of the checkpoint in a savepoint."""

_BRING_BACK = "Bring it back from a copy of the savepoint, or use another savepoint"

_FROM_CHECKPOINT, _FROM_SAVEPOINT = "../", f"{CKPT}/"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checkpoint that can be copied.

    Args:
        storage: of the location or savepoint.
        record: its record.
        metadata: its `_metadata`, with the paths that it has in a location.
        path: that file, as a whole path or URL.
    """

    storage: Storage
    record: CheckpointRecord
    metadata: CheckpointMetadata
    path: str

    def state(self) -> CheckpointState:
        """Its state.

        Raises:
            DamagedCheckpointError: it is not what spark-ckpt writes.
        """
        return state_of(self.storage, self.record, self.metadata)


def is_savepoint(storage: Storage) -> bool:
    """Whether there is a complete savepoint.

    Raises:
        StorageError: the storage does not say.
    """
    return storage.exists(RECORD)


def read_savepoint_record(storage: Storage) -> CheckpointRecord:
    """The record of a savepoint.

    Raises:
        CorruptRecordError: it is damaged.
        StorageError: it cannot be read.
    """
    path = storage.describe(RECORD)
    record = decode_record(storage.read(RECORD), path, way_out=_BRING_BACK)
    if not isinstance(record, CheckpointRecord):
        raise CorruptRecordError(path, "it is the record of a claim", _BRING_BACK)
    return record


def find_record(source: Storage, checkpoint_id: int | None) -> CheckpointRecord:
    """The record of the checkpoint that is meant.

    That of a savepoint is its own; of a location it is by default the newest whose batch Spark has committed.

    Args:
        source: a checkpoint location or a savepoint.
        checkpoint_id: the checkpoint.

    Raises:
        NoCheckpointError: no batch has completed yet.
        CheckpointNotFoundError: there is no such checkpoint.
        NotCommittedError: Spark's logs have not what going on after its batch needs.
        CorruptRecordError: a record is damaged.
        StorageError: the source cannot be read.
    """
    if not is_savepoint(source):
        return _select(source, list_completed(source).records, checkpoint_id)
    record = read_savepoint_record(source)
    if checkpoint_id is not None and checkpoint_id != record.id:
        raise CheckpointNotFoundError(source.location, checkpoint_id, [record.id])
    return record


def read_snapshot(source: Storage, record: CheckpointRecord) -> Snapshot:
    """The checkpoint of a record, from the place that the record is of.

    Raises:
        DamagedCheckpointError: its `_metadata` is not what its record says.
        StorageError: it cannot be read.
    """
    if is_savepoint(source):
        metadata = read_metadata(source, record, METADATA_FILE_NAME)
        return Snapshot(source, record, with_location_paths(metadata), source.describe(METADATA_FILE_NAME))
    path = source.describe(in_location(record.metadata.path))
    return Snapshot(source, record, read_metadata(source, record), path)


def with_savepoint_paths(metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The same for a `_metadata` that lies at the top of a savepoint."""
    return with_parts(metadata, _on_paths(_FROM_CHECKPOINT, _FROM_SAVEPOINT))


def with_location_paths(metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The same for a `_metadata` in `ckpt/chk-<id>`."""
    return with_parts(metadata, _on_paths(_FROM_SAVEPOINT, _FROM_CHECKPOINT))


def _on_paths(old: str, new: str) -> Callable[[Any], Any]:
    def change(part: Any) -> Any:  # noqa: ANN401
        if isinstance(part, RelativeFileStateHandle) and part.relative_path.startswith(old):
            return replace(part, relative_path=new + part.relative_path.removeprefix(old))
        return part

    return change


def _select(storage: Storage, records: Sequence[CheckpointRecord], checkpoint_id: int | None) -> CheckpointRecord:
    if checkpoint_id is not None and all(record.id != checkpoint_id for record in records):
        raise CheckpointNotFoundError(storage.location, checkpoint_id, [record.id for record in records])
    if not records:
        raise NoCheckpointError(storage.location)
    batches = SparkBatches.of(SparkLog(storage))
    for record in reversed(records):
        if checkpoint_id in (None, record.id) and batches.can_follow(record.batch_id):
            return record
    wanted = records[-1] if checkpoint_id is None else next(r for r in records if r.id == checkpoint_id)
    raise NotCommittedError(storage.location, wanted.id, wanted.batch_id)
