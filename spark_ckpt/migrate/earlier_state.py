"""State files of the provider that a query was imported from. Nothing reads them once a later batch is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from spark_ckpt.config import PROVIDER_CLASS
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.import_marker import MARKER, ImportMarker, read_marker
from spark_ckpt.location.orphans import Leftover
from spark_ckpt.migrate.errors import TransferRefusedError
from spark_ckpt.migrate.stopped_query import PROVIDERS, read_stopped_query
from spark_ckpt.operations.gc import EarlierState
from spark_ckpt.spark_files.logs import SparkLog, operator_directory
from spark_ckpt.storage import FileInfo, Storage

_METADATA = "_metadata"


def find(storage: Storage) -> EarlierState | None:
    """The earlier provider's state files, if the import in place can no longer be undone.

    Returns:
        The files; None without an import, and until the query has committed a batch with spark-ckpt.

    Raises:
        CheckpointError: the marker of the import is damaged.
        SparkLogFormatError, StorageError: a log cannot be read, or a directory not be listed.
    """
    marker = read_marker(storage)
    if marker is None or marker.checkpoint_id is None or not _is_needed_no_more(storage, marker):
        return None
    files: list[Leftover] = []
    directories: list[str] = []
    log = SparkLog(storage)
    for operator_id in log.operators():
        for partition in log.partitions(operator_id):
            for path, entry in _below(storage, f"{operator_directory(operator_id)}/{partition}"):
                if entry.is_directory:
                    directories.append(path)
                else:
                    files.append(Leftover(path, entry.size, entry.modified_ms))
    provider = PROVIDERS.get(marker.provider, marker.provider)
    return EarlierState(provider, tuple(files), tuple(reversed(directories)))


def delete(
    storage: Storage, earlier: EarlierState, progress: Callable[[], None] = lambda: None
) -> list[tuple[str, str]]:
    """Deletes the earlier provider's state files. The query may be running.

    Args:
        storage: storage of the checkpoint location.
        earlier: the files.
        progress: called after each file.

    Returns:
        Path and reason of each failed deletion; the files stay for the next call.

    Raises:
        CheckpointError: the marker of the import is damaged.
        StorageError: the marker cannot be changed. Nothing was deleted.
    """
    marker = read_marker(storage)
    if marker is not None and marker.entries:
        # From here on, an undo would find incomplete state.
        storage.write_atomic(MARKER, replace(marker, entries={}).encode())
    failed = []
    for file in earlier.files:
        try:
            storage.delete(file.path)
        except SparkCkptError as e:
            failed.append((file.path, str(e)))
        progress()
    for directory in earlier.directories:
        storage.remove_empty(directory)
    if not failed:
        storage.delete(MARKER)
    return failed


def _is_needed_no_more(storage: Storage, marker: ImportMarker) -> bool:
    try:
        query = read_stopped_query(storage)
    except TransferRefusedError:
        return False  # without logs, keep everything
    return query.batch_id > marker.batch_id and query.provider == PROVIDER_CLASS


def _below(storage: Storage, directory: str) -> Iterator[tuple[str, FileInfo]]:
    """Entries below a partition's directory, parents before children, except Spark's metadata and schemas."""
    for entry in storage.list(directory):
        path = f"{directory}/{entry.name}"
        if entry.name == _METADATA:
            continue
        if not entry.is_directory or not _holds_metadata(storage, path):
            yield path, entry
        if entry.is_directory:
            yield from _below(storage, path)


def _holds_metadata(storage: Storage, directory: str) -> bool:
    return any(entry.name == _METADATA for entry in storage.list(directory))
