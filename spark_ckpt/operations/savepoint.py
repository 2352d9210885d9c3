"""Savepoints: self-contained copies of a checkpoint, which may be moved anywhere."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from spark_ckpt.completed import MetadataReference, encode_record
from spark_ckpt.metadata import METADATA_FILE_NAME, dumps
from spark_ckpt.operations.copying import CheckpointCopy, Copier
from spark_ckpt.operations.snapshot import RECORD, find_record, read_snapshot, with_savepoint_paths
from spark_ckpt.operations.spark_log import QUERY, SparkLog
from spark_ckpt.operations.verifying import Progress
from spark_ckpt.storage import Storage


def take_savepoint(
    storage: Storage,
    target: Storage,
    checkpoint_id: int | None = None,
    *,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> CheckpointCopy:
    """Copies a checkpoint, with all that going on from it needs. Everything is read back before it counts as complete.

    May run beside the query.

    Args:
        storage: of the checkpoint location.
        target: a new directory.
        checkpoint_id: the checkpoint; by default the newest whose batch Spark has committed.
        dry_run: whether to check everything that can be without copying, and write nothing.
        progress: called after each state file.

    Raises:
        TargetNotEmptyError: there is something already.
        NoCheckpointError, CheckpointNotFoundError, NotCommittedError: there is no such checkpoint to go on from.
        DamagedCheckpointError: it is damaged.
        OutrunError: the query drops its checkpoints faster than they can be copied.
        StorageError: something cannot be read or written.
    """
    copier = Copier(storage, target, progress)
    copier.check_target()
    query_id = SparkLog(storage).query_id()
    if dry_run:
        return copier.planned(read_snapshot(storage, find_record(storage, checkpoint_id)), query_id)
    snapshot = copier.copy_checkpoint(checkpoint_id)
    copier.copy_spark_files(snapshot)
    copier.copy(QUERY)
    metadata = snapshot.metadata
    data = dumps(with_savepoint_paths(metadata), metadata.version)
    copier.write(METADATA_FILE_NAME, data)
    copier.check_state(snapshot, metadata)
    copier.copy_logs(snapshot.record.batch_id)
    reference = MetadataReference(METADATA_FILE_NAME, len(data), hashlib.sha256(data).hexdigest())
    copier.write(RECORD, encode_record(replace(snapshot.record, metadata=reference)))
    return copier.result(snapshot, query_id)
