"""The completed checkpoints of a location, from its log or, without a log, from a scan of each `_metadata`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.chains import ChainTable
from spark_ckpt.checkpoint.compose import decompose
from spark_ckpt.checkpoint.layout import CKPT, checkpoint_of_directory, in_location
from spark_ckpt.checkpoint.load import check_files
from spark_ckpt.completed import CheckpointRecord, MetadataReference, Owner, RecordFiles, Scan, read_settled
from spark_ckpt.errors import (
    DamagedCheckpointError,
    LogMissingError,
    SparkCkptError,
    StateFileNotFoundError,
    StorageError,
    UnsupportedFormatError,
)
from spark_ckpt.location.errors import CheckpointNotFoundError, CheckpointsMissingError
from spark_ckpt.location.missing import batch_without_checkpoint
from spark_ckpt.location.tags import Tags
from spark_ckpt.metadata import METADATA_FILE_NAME, loads
from spark_ckpt.storage import Storage

_T = TypeVar("_T")

_WAY_OUT = "The checkpoint is skipped. Restore the file from a backup, or delete the directory of the checkpoint"


def checkpoint_directories(storage: Storage) -> dict[int, str]:
    """The directories of checkpoints by id, ascending; of several attempts the last.

    Raises:
        StorageError: the location cannot be listed.
    """
    names = sorted(
        (entry.name for entry in storage.list(CKPT) if entry.is_directory), key=lambda name: (len(name), name)
    )
    found = [(checkpoint_of_directory(name), name) for name in names]
    return {i: name for i, name in sorted(found, key=lambda pair: pair[0] or 0) if i is not None}


def scan(storage: Storage) -> Scan:
    """Reads until two listings agree.

    A record is made from `_metadata` alone, so it lacks host, generation and duration.

    Raises:
        StorageError: the storage does not answer, or the location keeps changing.
    """

    directories: dict[int, str] = {}
    logs: dict[int, str | None] = {}

    def ids() -> list[int]:
        there = checkpoint_directories(storage)
        directories.update(there)
        return list(there)

    def read(checkpoint_id: int) -> CheckpointRecord | DamagedCheckpointError:
        try:
            record, logs[checkpoint_id] = _read_metadata(storage, checkpoint_id, directories[checkpoint_id])
            return record
        except DamagedCheckpointError as e:
            return e

    found = read_settled(ids, lambda ids: {i: read(i) for i in ids}, storage.describe(CKPT))
    return Scan(
        tuple(record for record in found.values() if isinstance(record, CheckpointRecord)),
        tuple(damage for damage in found.values() if isinstance(damage, DamagedCheckpointError)),
        1 + max(found, default=0),
        logs.get(max(logs, default=0)),
    )


def _read_metadata(storage: Storage, checkpoint_id: int, directory: str) -> tuple[CheckpointRecord, str | None]:
    path = f"{directory}/{METADATA_FILE_NAME}"
    where = storage.describe(in_location(path))
    try:
        data = storage.read(in_location(path))
        metadata = loads(data, where)
        batch, table = decompose(metadata)
    except StateFileNotFoundError:
        raise DamagedCheckpointError(where, checkpoint_id, "the file is missing", None, _WAY_OUT) from None
    except StorageError:
        raise
    except UnsupportedFormatError as e:
        raise UnsupportedFormatError(where, e.needs, e.features) from e
    except SparkCkptError as e:
        raise DamagedCheckpointError(where, checkpoint_id, str(e), None, _WAY_OUT) from e
    if metadata.checkpoint_id != checkpoint_id:
        reason = f"it is the metadata of checkpoint {metadata.checkpoint_id}"
        raise DamagedCheckpointError(where, checkpoint_id, reason, None, _WAY_OUT)
    reference = MetadataReference.of(path, data)
    return _checked(storage, _record(storage, checkpoint_id, batch, reference), table), batch.log


def _checked(storage: Storage, record: CheckpointRecord, table: ChainTable) -> CheckpointRecord:
    try:
        check_files(storage, record, table)
    except DamagedCheckpointError as e:
        raise DamagedCheckpointError(e.path, record.id, e.reason, None, _WAY_OUT) from None
    return record


def _record(storage: Storage, checkpoint_id: int, batch: SparkBatch, metadata: MetadataReference) -> CheckpointRecord:
    operators = batch.summaries()
    return CheckpointRecord(
        id=checkpoint_id,
        generation=0,
        owner=Owner("an unknown host", 0, "", batch.query_id, batch.run_id),
        attempt="",
        batch_id=batch.batch_id,
        version=batch.version,
        timestamp_ms=_modified_ms(storage, metadata.path),
        duration_ms=0,
        state_bytes=sum(operator.state_bytes for operator in operators),
        new_bytes=0,
        rows=sum(operator.rows for operator in operators),
        operators=operators,
        metadata=metadata,
    )


def _modified_ms(storage: Storage, path: str) -> int:
    """Modification time of `_metadata`; 0 if the storage reports none."""
    directory, _, name = in_location(path).rpartition("/")
    return next((file.modified_ms or 0 for file in storage.list(directory) if file.name == name), 0)


def list_completed(storage: Storage) -> Scan:
    """The checkpoints in the log; without a log, those of a scan. With the store `zookeeper` the log may lag behind.

    Raises:
        CheckpointsMissingError: no checkpoint exists, but Spark's logs show earlier ones.
        LogMissingError: the checkpoints of a scan were in a log, which is gone.
        DamagedRecordError: a record is damaged.
        StorageError: the storage does not answer.
    """
    result = _read_log(storage)
    if result.records or result.damaged or (batch_id := batch_without_checkpoint(storage)) is None:
        return result
    # A running query completes the checkpoint of a batch before it writes the entries that Spark's logs have now.
    result = _read_log(storage)
    if not result.records:
        raise CheckpointsMissingError(storage.describe(CKPT), batch_id)
    return result


def logged_or_scanned(storage: Storage, read: Callable[[], dict[int, _T]]) -> tuple[dict[int, _T], Scan | None]:
    """What is in the log, and None; without a log, the result of a scan, whose `log` says whether there was one.

    Args:
        storage: storage of the checkpoint location.
        read: reads the log; it is read again if a scan shows that a log has just begun.

    Raises:
        StorageError: the storage does not answer, or the location keeps changing.
    """
    if found := read():
        return found, None
    scanned = scan(storage)
    # A query that has just begun claims before it writes its first `_metadata`.
    if scanned.log is not None and (found := read()):
        return found, None
    return {}, scanned


def _read_log(storage: Storage) -> Scan:
    files = RecordFiles(storage)
    records, scanned = logged_or_scanned(storage, files.read_all)
    if scanned is not None:
        if scanned.log is not None:
            raise LogMissingError(storage.describe(files.directory), scanned.log)
        return scanned
    checkpoints = tuple(record for record in records.values() if isinstance(record, CheckpointRecord))
    return Scan(checkpoints, next_id=1 + max(records))


def is_retained(storage: Storage, record: CheckpointRecord) -> bool:
    """True if a checkpoint still exists: in the log, or by a tag.

    Raises:
        StorageError: the storage does not answer.
    """
    if not record.attempt:  # found by a scan: it has no record
        return storage.exists(in_location(record.metadata.path))
    return record.id in RecordFiles(storage).ids() or is_tagged(storage, record)


def is_tagged(storage: Storage, record: CheckpointRecord) -> bool:
    """True if a checkpoint has a tag.

    Raises:
        StorageError: the storage does not answer.
    """
    return any(tag.checkpoint_id == record.id for tag in Tags(storage).list())


def recorded(storage: Storage, records: Sequence[CheckpointRecord], checkpoint_id: int) -> CheckpointRecord:
    """The record of a checkpoint, in the log or in a tag.

    Args:
        storage: storage of the checkpoint location.
        records: checkpoints of the log.
        checkpoint_id: the checkpoint.

    Raises:
        CheckpointNotFoundError: no such checkpoint.
        DamagedRecordError: a tag is damaged.
        StorageError: the tags cannot be read.
    """
    tags, ids = Tags(storage), {record.id for record in records}
    if checkpoint_id in ids:
        return next(record for record in records if record.id == checkpoint_id)
    for tag in tags.list():
        if tag.checkpoint_id == checkpoint_id and (record := tags.read(tag)) is not None:
            return record
        ids.add(tag.checkpoint_id)
    raise CheckpointNotFoundError(storage.location, checkpoint_id, sorted(ids))
