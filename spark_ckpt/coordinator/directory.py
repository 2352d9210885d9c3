"""The completed checkpoints of a location, as its files tell them: for whoever is not its driver."""

from __future__ import annotations

from spark_ckpt.completed import CheckpointRecord, RecordFiles, Scan
from spark_ckpt.coordinator.layout import in_location
from spark_ckpt.coordinator.scan import scan
from spark_ckpt.storage import Storage


def list_completed(storage: Storage) -> Scan:
    """What the log says, which with the store `zookeeper` may lag behind; where there is none, what a scan finds.

    Raises:
        CorruptRecordError: a record is damaged.
        StorageError: the storage does not answer.
    """
    records = RecordFiles(storage).read_all()
    if not records:
        return scan(storage)
    checkpoints = tuple(record for record in records.values() if isinstance(record, CheckpointRecord))
    return Scan(checkpoints, next_id=1 + max(records))


def is_retained(storage: Storage, record: CheckpointRecord) -> bool:
    """Whether a checkpoint is still there.

    Raises:
        StorageError: the storage does not answer.
    """
    if not record.attempt:  # it has no record: a scan has found it
        return storage.exists(in_location(record.metadata.path))
    return record.id in RecordFiles(storage).ids()
