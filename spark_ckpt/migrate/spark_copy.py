"""Copies of Spark's own files of a stopped query, without its id, state and logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spark_ckpt.operations.copy import files_of_sources
from spark_ckpt.operations.restore import as_hadoop_writes
from spark_ckpt.spark_files.delta_schemas import is_schema_log, moved_schema_log
from spark_ckpt.spark_files.logs import SparkLog, operator_directory
from spark_ckpt.storage import Storage, copy_file, files_below


def copy_query_files(
    source: Storage, target: Storage, batch_id: int, partitions: Mapping[int, int] | None = None
) -> None:
    """Copies the files of sources, and the metadata and schemas of operators.

    Operator metadata names schema files by absolute path: those of the target. The partitions' directories are created
    too, because the `statestore` source counts them.

    Args:
        source: a checkpoint location.
        target: a new one.
        batch_id: the last batch; later metadata is left out.
        partitions: number of partitions by operator; by default all that have a directory.

    Raises:
        SparkLogFormatError: a file is damaged.
        StorageError: a file cannot be copied.
    """
    log = SparkLog(source)
    location = as_hadoop_writes(target.location)
    for name in files_of_sources(source):
        if is_schema_log(name):
            target.write_atomic(name, moved_schema_log(source.read(name), location))
        else:
            copy_file(source, name, target, name)
    for operator_id in log.operators():
        moved = log.metadata_until(operator_id, batch_id)
        later = set(log.later_metadata(operator_id, batch_id))
        for name in _files_of_operator(source, operator_id):
            if name in moved:
                target.write_atomic(name, moved[name].moved_to(location).encode())
            elif name not in later:
                copy_file(source, name, target, name)
        known = (partitions or {}).get(operator_id)
        for partition in log.partitions(operator_id) if known is None else range(known):
            target.make_directory(f"{operator_directory(operator_id)}/{partition}")


def _files_of_operator(storage: Storage, operator_id: int) -> Iterator[str]:
    """Files of an operator's metadata and schemas. Version 1 keeps schemas below the first partition, per store."""
    directory = operator_directory(operator_id)
    for part in ("_metadata", "_stateSchema", "0/_metadata"):
        yield from files_below(storage, f"{directory}/{part}")
    for entry in storage.list(f"{directory}/0"):
        if entry.is_directory and not entry.name.startswith(("_", ".")):
            yield from files_below(storage, f"{directory}/0/{entry.name}/_metadata")
