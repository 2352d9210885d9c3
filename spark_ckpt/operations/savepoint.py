"""Savepoints: self-contained, relocatable copies of a checkpoint."""

from __future__ import annotations

from dataclasses import replace

from spark_ckpt.clock import SystemClock
from spark_ckpt.completed import MetadataReference, encode_record
from spark_ckpt.location.savepoint import SAVEPOINT_RECORD, with_savepoint_paths
from spark_ckpt.location.savepoint_notes import SavepointNote, write_note
from spark_ckpt.location.snapshot import Snapshot, find_record, read_snapshot
from spark_ckpt.metadata import METADATA_FILE_NAME, dumps
from spark_ckpt.operations.copy import CheckpointCopy, Copier
from spark_ckpt.progress import Progress
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
    """Copies a checkpoint with everything needed to start from it. The copy is read back before it counts as complete.

    The query may be running. Its location gets a note of the savepoint, if it can be written.

    Args:
        storage: storage of the checkpoint location.
        target: a new directory.
        checkpoint_id: the checkpoint; by default the newest with a committed batch.
        dry_run: True to write nothing, after all checks possible without copying.
        progress: called after each state file.

    Raises:
        TargetNotEmptyError: the target is not empty.
        NoCheckpointError, CheckpointNotFoundError, NotCommittedError: no such checkpoint to resume from.
        DamagedCheckpointError: the checkpoint is damaged.
        SubsumedDuringCopyError: the query subsumes its checkpoints faster than they can be copied.
        StorageError: a file cannot be read or written.
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
    copier.copy_logs(snapshot)
    copier.write(SAVEPOINT_RECORD, record)
    taken_ms, path = SystemClock().now_ms(), target.describe("")
    write_note(storage, SavepointNote(snapshot.record.id, snapshot.record.batch_id, taken_ms, path))
    return copier.result(snapshot, query_id)


def _files_of_savepoint(snapshot: Snapshot) -> tuple[bytes, bytes]:
    """The `_metadata` of a savepoint and its record."""
    data = dumps(with_savepoint_paths(snapshot.metadata), snapshot.metadata.version)
    reference = MetadataReference.of(METADATA_FILE_NAME, data)
    return data, encode_record(replace(snapshot.record, metadata=reference))
