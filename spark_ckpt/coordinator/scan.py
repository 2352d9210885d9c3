"""The checkpoints of a location without a log: each `_metadata`, read in full and checked."""

from __future__ import annotations

import hashlib

from spark_ckpt.completed import CheckpointRecord, MetadataReference, Owner, Scan, read_settled
from spark_ckpt.coordinator.batch_state import SparkBatch
from spark_ckpt.coordinator.chains import ChainTable
from spark_ckpt.coordinator.compose import decompose
from spark_ckpt.coordinator.layout import CKPT, checkpoint_of_directory, in_location
from spark_ckpt.coordinator.loading import check_files
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError, StateFileNotFoundError, StorageError
from spark_ckpt.metadata import METADATA_FILE_NAME, loads
from spark_ckpt.storage import Storage

_WAY_OUT = "It is left out. Restore the file from a backup, or let the checkpoint go: delete its directory"


def checkpoint_directories(storage: Storage) -> dict[int, str]:
    """The directories of checkpoints by their ids, ascending; of several with one id the last attempt's.

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

    A record is made from `_metadata` alone, so it names no host, no generation and no duration.

    Raises:
        StorageError: the storage does not answer, or the location does not stand still.
    """

    directories: dict[int, str] = {}

    def ids() -> list[int]:
        there = checkpoint_directories(storage)
        directories.update(there)
        return list(there)

    def read(checkpoint_id: int) -> CheckpointRecord | DamagedCheckpointError:
        try:
            return _read(storage, checkpoint_id, directories[checkpoint_id])
        except DamagedCheckpointError as e:
            return e

    found = read_settled(ids, read, storage.describe(CKPT))
    return Scan(
        tuple(record for record in found.values() if isinstance(record, CheckpointRecord)),
        tuple(damage for damage in found.values() if isinstance(damage, DamagedCheckpointError)),
        1 + max(found, default=0),
    )


def _read(storage: Storage, checkpoint_id: int, directory: str) -> CheckpointRecord:
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
    except SparkCkptError as e:
        raise DamagedCheckpointError(where, checkpoint_id, str(e), None, _WAY_OUT) from e
    if metadata.checkpoint_id != checkpoint_id:
        reason = f"it is the metadata of checkpoint {metadata.checkpoint_id}"
        raise DamagedCheckpointError(where, checkpoint_id, reason, None, _WAY_OUT)
    reference = MetadataReference(path, len(data), hashlib.sha256(data).hexdigest())
    return _checked(storage, _record(storage, checkpoint_id, batch, reference), table)


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
    """When `_metadata` was written; 0 where the storage does not say."""
    directory, _, name = in_location(path).rpartition("/")
    return next((file.modified_ms or 0 for file in storage.list(directory) if file.name == name), 0)
