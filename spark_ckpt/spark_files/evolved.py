"""Files of Spark that an evolution of the query has replaced: those of its state and of its sources.

A checkpoint from before has rows of the earlier types, so it is read with the earlier files, and a rollback to it puts
them back (docs/protocol.md, section 5.2). They are in `ckpt/evolved/<batch>`, by the last batch before the evolution.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_ckpt.errors import CheckpointError, StateFileNotFoundError
from spark_ckpt.spark_files.logs import SOURCES, STATE, checksum_name
from spark_ckpt.storage import Storage, copy_file, delete_tree, files_below
from spark_ckpt.storage.redirected import RedirectedStorage

EVOLVED = "ckpt/evolved"
"""Directory with one directory for each evolution."""

_MANIFEST = "evolution.json"
_FORMAT = 1
_REPLACEABLE = (STATE, SOURCES)


@dataclass(frozen=True, slots=True)
class ReplacedFiles:
    """Files that one evolution has replaced.

    Args:
        batch_id: the last batch that they belong to.
        directories: the replaced directories, `state`, `sources` or both.
    """

    batch_id: int
    directories: tuple[str, ...]

    @property
    def root(self) -> str:
        """Their directory, relative to the checkpoint location."""
        return f"{EVOLVED}/{self.batch_id}"


def evolutions(storage: Storage) -> list[ReplacedFiles]:
    """Replaced files of each evolution of a query, the oldest first.

    Raises:
        CheckpointError: a manifest is damaged.
        StorageError: they cannot be read.
    """
    batches = sorted(int(entry.name) for entry in storage.list(EVOLVED) if entry.name.isdecimal())
    return [found for batch_id in batches if (found := _read(storage, batch_id)) is not None]


def replaced_after(storage: Storage, batch_id: int) -> ReplacedFiles | None:
    """Files that belong to a batch, if an evolution has replaced them since.

    Raises:
        CheckpointError, StorageError: as in `evolutions`.
    """
    return next((each for each in evolutions(storage) if each.batch_id >= batch_id), None)


def files_at(storage: Storage, batch_id: int) -> Storage:
    """The storage of a checkpoint location, with the files of state and sources that belong to a batch.

    Args:
        storage: storage of the checkpoint location, or of a savepoint.
        batch_id: the batch.

    Raises:
        CheckpointError, StorageError: as in `evolutions`.
    """
    directories: dict[str, str] = {}
    for replaced in evolutions(storage):
        if replaced.batch_id >= batch_id:
            for name in replaced.directories:  # an evolution may have left one of them alone
                directories.setdefault(name, f"{replaced.root}/{name}")
    return RedirectedStorage(storage, directories) if directories else storage


def keep(storage: Storage, batch_id: int, directories: Sequence[str]) -> ReplacedFiles:
    """Copies files that are about to be replaced. They count once all are there.

    Args:
        storage: storage of the checkpoint location.
        batch_id: the last batch that they belong to.
        directories: the directories, `state`, `sources` or both.

    Raises:
        StorageError: a file cannot be copied.
    """
    kept = ReplacedFiles(batch_id, tuple(directories))
    delete_tree(storage, kept.root)  # of an earlier try
    for directory in directories:
        for name in files_below(storage, directory):
            copy_file(storage, name, storage, f"{kept.root}/{name}")
    manifest = {"format": _FORMAT, "batch_id": batch_id, "directories": list(directories)}
    storage.write_atomic(f"{kept.root}/{_MANIFEST}", json.dumps(manifest).encode())
    return kept


def put_back(storage: Storage, batch_id: int) -> bool:
    """Puts back the files that belong to a batch, and forgets all evolutions since. Can be repeated after a failure.

    Args:
        storage: storage of the checkpoint location.
        batch_id: the batch.

    Returns:
        True if there was an evolution since.

    Raises:
        CheckpointError: a manifest is damaged.
        StorageError: a file cannot be changed.
    """
    later = [each for each in evolutions(storage) if each.batch_id >= batch_id]
    # From the newest on: each evolution has replaced files of the one before, and perhaps not both directories.
    for replaced in reversed(later):
        for directory in replaced.directories:
            names = list(files_below(storage, f"{replaced.root}/{directory}"))
            files = {name.removeprefix(f"{replaced.root}/"): storage.read(name) for name in names}
            replace_files(storage, directory, files)
        forget(storage, replaced)
    return bool(later)


def forget_before(storage: Storage, batch_id: int) -> None:
    """Deletes what evolutions before a batch have replaced: no checkpoint needs it.

    Args:
        storage: storage of the checkpoint location.
        batch_id: batch of the oldest retained checkpoint.

    Raises:
        CheckpointError: a manifest is damaged.
        StorageError: a file cannot be deleted.
    """
    for replaced in evolutions(storage):
        if replaced.batch_id < batch_id:
            forget(storage, replaced)


def forget(storage: Storage, replaced: ReplacedFiles) -> None:
    """Deletes replaced files, the manifest first.

    Raises:
        StorageError: a file cannot be deleted.
    """
    storage.delete(f"{replaced.root}/{_MANIFEST}")
    storage.sync_deletions(replaced.root)
    delete_tree(storage, replaced.root)


def replace_files(storage: Storage, directory: str, files: Mapping[str, bytes]) -> None:
    """Makes these the only files of a directory.

    Args:
        storage: storage of the checkpoint location.
        directory: `state` or `sources`, which have a directory for each operator and source.
        files: content by name, relative to the checkpoint location.

    Raises:
        StorageError: a file cannot be changed.
    """
    for name, data in files.items():
        storage.delete(checksum_name(name))  # Hadoop would verify the new content against it
        storage.write_atomic(name, data)
    for name in set(files_below(storage, directory)) - files.keys():
        storage.delete(name)
        storage.delete(checksum_name(name))
        storage.remove_empty(name.rpartition("/")[0])
    used = {name.split("/")[1] for name in files}
    for entry in storage.list(directory):
        if entry.is_directory and entry.name not in used:
            delete_tree(storage, f"{directory}/{entry.name}")


def _read(storage: Storage, batch_id: int) -> ReplacedFiles | None:
    """The replaced files of an evolution; None if it was interrupted before it replaced any."""
    name = f"{EVOLVED}/{batch_id}/{_MANIFEST}"
    try:
        data = storage.read(name)
    except StateFileNotFoundError:
        return None
    try:
        fields = json.loads(data)
        directories = tuple(str(directory) for directory in fields["directories"])
        if fields["format"] != _FORMAT or not set(directories) <= set(_REPLACEABLE):
            raise ValueError(f"format {fields['format']!r}, directories {directories}")
    except (KeyError, TypeError, ValueError) as e:
        raise CheckpointError(f"{storage.describe(name)}: malformed manifest of an evolution: {e!r}") from e
    return ReplacedFiles(batch_id, directories)
