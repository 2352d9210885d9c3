"""Restore: a new checkpoint location from a savepoint or a checkpoint."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import replace

from spark_ckpt.checkpoint.batch import SPARK_BATCH
from spark_ckpt.checkpoint.compose import operator_id_of, spark_batch_of
from spark_ckpt.checkpoint.layout import in_location, metadata_path
from spark_ckpt.completed import CheckpointRecord, MetadataReference, RecordFiles, encode_record
from spark_ckpt.location.snapshot import Snapshot, find_record, read_snapshot
from spark_ckpt.metadata import CheckpointMetadata, dumps
from spark_ckpt.operations.copy import CheckpointCopy, Copier, files_of_sources
from spark_ckpt.progress import Progress
from spark_ckpt.redaction import HIDDEN
from spark_ckpt.spark_files.delta_schemas import is_schema_log, moved_schema_log
from spark_ckpt.spark_files.evolved import files_at
from spark_ckpt.spark_files.logs import QUERY, SparkLog
from spark_ckpt.storage import Storage


def restore(
    source: Storage,
    target: Storage,
    checkpoint_id: int | None = None,
    *,
    keep_query_id: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda done, of: None,
) -> CheckpointCopy:
    """Creates a checkpoint location from a savepoint or from a checkpoint of another location. Everything is read back.

    The new location shares no file with the source. By default it gets a new query id, by which sinks and the store
    `zookeeper` tell both queries apart. Its log of completed checkpoints starts with this one checkpoint.

    Args:
        source: a savepoint, or a checkpoint location; its query may be running.
        target: a new directory.
        checkpoint_id: the checkpoint of a location; by default the newest with a committed batch.
        keep_query_id: True to move the query: the new location keeps its id.
        dry_run: True to write nothing, after all checks possible without copying.
        progress: called after each state file.

    Raises:
        SparkCkptError: as in `take_savepoint`.
    """
    copier = Copier(source, target, progress)
    copier.check_target()
    query_id = SparkLog(source).query_id() if keep_query_id else str(uuid.uuid4())
    query_file = json.dumps({"id": query_id}, separators=(",", ":")).encode()
    if dry_run:
        snapshot = read_snapshot(source, find_record(source, checkpoint_id))
        metadata = of_query(snapshot.metadata, query_id)
        written = {
            **moved_files(source, target, snapshot),
            QUERY: query_file,
            **_checkpoint_files(target, snapshot, metadata, query_id),
        }
        return copier.planned(snapshot, query_id, written)
    snapshot = copier.copy_checkpoint(checkpoint_id)
    metadata = of_query(snapshot.metadata, query_id)
    for name, data in moved_files(source, target, snapshot).items():
        copier.write(name, data)
    copier.copy_spark_files(snapshot)
    copier.write(QUERY, query_file)
    for name, data in _checkpoint_files(target, snapshot, metadata, query_id).items():
        copier.create(name, data)
    copier.check_state(snapshot, metadata)
    copier.copy_logs(snapshot)
    return copier.result(snapshot, query_id)


def moved_files(source: Storage, target: Storage, snapshot: Snapshot) -> dict[str, bytes]:
    """Files with the location in them, changed to the new one: metadata of operators, and schemas that Delta tracks.

    Raises:
        SparkLogFormatError: one of Spark's files is damaged.
        StorageError: one cannot be read.
    """
    source = files_at(source, snapshot.record.batch_id)
    log = SparkLog(source)
    location = as_hadoop_writes(target.location)
    return {
        name: operator.moved_to(location).encode()
        for operator_id in log.operators()
        for name, operator in log.metadata_until(operator_id, snapshot.record.batch_id).items()
    } | {
        name: moved_schema_log(source.read(name), location) for name in files_of_sources(source) if is_schema_log(name)
    }


def _checkpoint_files(
    target: Storage, snapshot: Snapshot, metadata: CheckpointMetadata, query_id: str
) -> dict[str, bytes]:
    """The `_metadata` and its record, in the order to create them. There is no claim."""
    data = dumps(metadata, metadata.version)
    record = _record(snapshot.record, query_id, data)
    files = {in_location(record.metadata.path): data}
    if record.attempt:  # the store `standalone` has no log, and rejects one
        files[RecordFiles(target).name(record.id)] = encode_record(record)
    return files


def as_hadoop_writes(location: str) -> str:
    """A location as Spark writes it: `s3a` for fsspec's `s3`, and `file:` for a path without a scheme."""
    scheme, separator, rest = location.rstrip("/").partition("://")
    rest = rest.removeprefix(f"{HIDDEN}@")  # Spark takes credentials from its settings
    if not separator:
        return f"file:{os.path.abspath(scheme)}"
    return f"s3a://{rest}" if scheme == "s3" else f"{scheme}://{rest}"


def of_query(metadata: CheckpointMetadata, query_id: str) -> CheckpointMetadata:
    """The checkpoint under another query id, from which the operator ids are derived.

    Raises:
        CheckpointError: spark-ckpt did not write it.
    """
    batch = spark_batch_of(metadata)
    names = [f"{store.operator_id}/{store.store}" for store in batch.stores]
    names += [f"source/{index}" for index in range(len(batch.sources))]
    ids = {operator_id_of(batch.query_id, name): operator_id_of(query_id, name) for name in names}
    payload = replace(batch, query_id=query_id).encode()
    return replace(
        metadata,
        master_states=tuple(
            replace(state, payload=payload) if state.name == SPARK_BATCH else state for state in metadata.master_states
        ),
        operator_states=tuple(
            replace(operator, operator_id=ids.get(operator.operator_id, operator.operator_id))
            for operator in metadata.operator_states
        ),
    )


def _record(record: CheckpointRecord, query_id: str, data: bytes) -> CheckpointRecord:
    """The record of the checkpoint in its new location."""
    reference = MetadataReference.of(metadata_path(record.id), data)
    return replace(record, owner=replace(record.owner, query_id=query_id), metadata=reference)
