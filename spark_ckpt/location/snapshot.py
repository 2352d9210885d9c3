"""A completed checkpoint as the source of a copy, in a checkpoint location or a savepoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState, read_metadata, state_of
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.location.errors import CheckpointNotFoundError, NoCheckpointError, NotCommittedError
from spark_ckpt.location.listing import list_completed, recorded
from spark_ckpt.location.savepoint import is_savepoint, read_savepoint_record, with_location_paths
from spark_ckpt.metadata import METADATA_FILE_NAME, CheckpointMetadata
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A checkpoint that can be copied.

    Args:
        storage: storage of the location or savepoint.
        record: its record.
        metadata: its `_metadata`, with paths as in a location.
        path: that file, as a full path or URL.
    """

    storage: Storage
    record: CheckpointRecord
    metadata: CheckpointMetadata
    path: str

    def state(self) -> CheckpointState:
        """Its state.

        Raises:
            DamagedCheckpointError: it is malformed.
        """
        return state_of(self.storage, self.record, self.metadata)


def find_record(source: Storage, checkpoint_id: int | None) -> CheckpointRecord:
    """The record of the selected checkpoint.

    A savepoint has only one. The default for a location is the newest with a committed batch.

    Args:
        source: a checkpoint location or a savepoint.
        checkpoint_id: the checkpoint.

    Raises:
        NoCheckpointError: no batch has completed yet.
        CheckpointNotFoundError: no such checkpoint.
        NotCommittedError: Spark's logs lack entries that a start after its batch needs.
        DamagedRecordError: a record is damaged.
        StorageError: the source cannot be read.
    """
    if not is_savepoint(source):
        return _select(source, list_completed(source).records, checkpoint_id)
    record = read_savepoint_record(source)
    if checkpoint_id is not None and checkpoint_id != record.id:
        raise CheckpointNotFoundError(source.location, checkpoint_id, [record.id])
    return record


def read_snapshot(source: Storage, record: CheckpointRecord) -> Snapshot:
    """The checkpoint of a record of `source`.

    Raises:
        DamagedCheckpointError: its `_metadata` does not match the record.
        StorageError: it cannot be read.
    """
    if is_savepoint(source):
        metadata = read_metadata(source, record, METADATA_FILE_NAME)
        return Snapshot(source, record, with_location_paths(metadata), source.describe(METADATA_FILE_NAME))
    path = source.describe(in_location(record.metadata.path))
    return Snapshot(source, record, read_metadata(source, record), path)


def _select(storage: Storage, records: Sequence[CheckpointRecord], checkpoint_id: int | None) -> CheckpointRecord:
    if checkpoint_id is not None:
        records = [recorded(storage, records, checkpoint_id)]
    if not records:
        raise NoCheckpointError(storage.location)
    batches = SparkBatches.of(SparkLog(storage))
    for record in reversed(records):
        if batches.can_follow(record.batch_id):
            return record
    raise NotCommittedError(storage.location, records[-1].id, records[-1].batch_id)
