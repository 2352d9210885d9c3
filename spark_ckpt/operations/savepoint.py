"""Savepoints: self-contained copies of a checkpoint, which may be moved anywhere."""

from __future__ import annotations

from dataclasses import replace

from spark_ckpt.completed import MetadataReference, encode_record
from spark_ckpt.location.savepoint import SAVEPOINT_RECORD, with_savepoint_paths
from spark_ckpt.metadata import METADATA_FILE_NAME, dumps
from spark_ckpt.operations.copy import CheckpointCopy, Copier
from spark_ckpt.operations.snapshot import Snapshot, find_record, read_snapshot
from spark_ckpt.operations.verify import Progress
from spark_ckpt.spark_files.logs import QUERY, SparkLog
from spark_ckpt.storage import Storage


def take_savepoint(
    storage: Storage,
    target: Storage,
    checkpoint_id: int | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> CheckpointCopy:
    """Copies a checkpoint, with everything that a start from it needs. It is read back before it counts as complete.

    May run beside the query.

    Args:
        storage: of the checkpoint location.
        target: a new directory.
        checkpoint_id: the checkpoint; by default the newest whose batch Spark has committed.
        dry_run: True to check everything that can be without copying, and write nothing.
        progress: called after each state file.

    Raises:
        TargetNotEmptyError: there is something already.
        NoCheckpointError, CheckpointNotFoundError, NotCommittedError: there is no such checkpoint to go on from.
        DamagedCheckpointError: it is damaged.
        SubsumedDuringCopyError: the query drops its checkpoints faster than they can be copied.
        StorageError: something cannot be read or written.
    """
    copier = Copier(storage, target, progress)
    copier.check_target()
    query_id = SparkLog(storage).query_id()
    if dry_run:
        snapshot = read_snapshot(storage, find_record(storage, checkpoint_id))
        data, record = _files_of_savepoint(snapshot)
        return copier.planned(snapshot, query_id, {METADATA_FILE_NAME: data, SAVEPOINT_RECORD: record})
    snapshot = copier.copy_checkpoint(checkpoint_id)
    copier.copy_spark_files(snapshot)
    copier.copy(QUERY)
    data, record = _files_of_savepoint(snapshot)
    copier.write(METADATA_FILE_NAME, data)
    copier.check_state(snapshot, snapshot.metadata)
    copier.copy_logs(snapshot.record.batch_id)
    copier.write(SAVEPOINT_RECORD, record)
    return copier.result(snapshot, query_id)


def _files_of_savepoint(snapshot: Snapshot) -> tuple[bytes, bytes]:
    """The `_metadata` of a savepoint and its record."""
    data = dumps(with_savepoint_paths(snapshot.metadata), snapshot.metadata.version)
    reference = MetadataReference.of(METADATA_FILE_NAME, data)
    return data, encode_record(replace(snapshot.record, metadata=reference))
