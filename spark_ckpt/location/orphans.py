"""Files below `ckpt`, and the orphans among them: files that no completed checkpoint refers to."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from spark_ckpt.checkpoint.layout import (
    CKPT,
    IMPORT_MARKER,
    MIRROR_NOTE,
    SAVEPOINTS,
    SHARED,
    TAGS,
    TASK_OWNED,
    checkpoint_of_directory,
    in_location,
    is_ours,
    is_temporary,
    without_checksum_suffix,
)
from spark_ckpt.completed import LOG
from spark_ckpt.location.errors import LinkedStateError, ModificationTimeUnknownError
from spark_ckpt.metadata import METADATA_FILE_NAME
from spark_ckpt.spark_files.evolved import EVOLVED
from spark_ckpt.spark_files.rollbacks import ROLLBACKS
from spark_ckpt.storage import FileInfo, Storage

_DIRECTORIES = (
    SHARED,
    LOG.removeprefix(f"{CKPT}/"),
    ROLLBACKS.removeprefix(f"{CKPT}/"),
    SAVEPOINTS,
    TAGS,
    TASK_OWNED,
    EVOLVED.removeprefix(f"{CKPT}/"),
)

MINIMUM_GRACE_SECONDS = 600.0
"""Shortest grace beside a running query: it may still refer to a younger file."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A possible orphan: a file or an empty directory.

    Args:
        path: path relative to `ckpt`.
        size: bytes.
        modified_ms: modification time in milliseconds since 1970 UTC; None if the storage reports none.
        is_directory: True for a directory.
    """

    path: str
    size: int
    modified_ms: int | None
    is_directory: bool = False

    @property
    def keeper(self) -> str:
        """The path that keeps this one while it is in use: `_metadata` keeps its directory, a file its checksum."""
        directory, _, name = self.path.rpartition("/")
        if checkpoint_of_directory(self.path if self.is_directory else directory) is not None:
            return f"{self.path if self.is_directory else directory}/{METADATA_FILE_NAME}"
        return f"{directory}/{without_checksum_suffix(name)}"


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of `ckpt`, `ckpt/shared` and the directories of checkpoints.

    Args:
        state: state files, `_metadata`, and temporary files of killed writers; in use or not.
        foreign: files that spark-ckpt did not write and never deletes.
    """

    state: tuple[Leftover, ...]
    foreign: tuple[Leftover, ...]


def check_no_links(storage: Storage) -> None:
    """Checks that no symbolic link leads writes and deletions below `ckpt` elsewhere.

    Raises:
        LinkedStateError: a symbolic link exists.
        StorageError: the location cannot be listed.
    """
    if link := storage.first_link(CKPT):
        raise LinkedStateError(storage.describe(link))


def list_state(storage: Storage) -> list[Leftover]:
    """State files and the files in the directories of checkpoints, in use or not. Foreign files are left out.

    Raises:
        LinkedStateError: a symbolic link exists.
        StorageError: the location cannot be listed.
    """
    return list(list_all(storage).state)


def list_all(storage: Storage) -> Listing:
    """State files, files in the directories of checkpoints, and foreign files.

    Raises:
        LinkedStateError: a symbolic link exists.
        StorageError: the location cannot be listed.
    """
    check_no_links(storage)
    shared = storage.list(in_location(SHARED))
    top = storage.list(CKPT)
    checkpoints = [entry for entry in top if entry.is_directory and checkpoint_of_directory(entry.name) is not None]
    inside = {entry: storage.list(in_location(entry.name)) for entry in checkpoints}
    state = [_leftover(SHARED, file) for file in shared if _is_file_of_ours(SHARED, file)]
    foreign = [_leftover("", entry) for entry in top if entry not in inside and not _is_known(entry)]
    foreign += [_leftover(SHARED, entry) for entry in shared if not _is_file_of_ours(SHARED, entry)]
    for directory, entries in inside.items():
        ours = [entry for entry in entries if _is_file_of_ours(directory.name, entry)]
        state += [_leftover(directory.name, file) for file in ours]
        foreign += [_leftover(directory.name, entry) for entry in entries if entry not in ours]
        if not entries:
            state.append(_leftover("", directory))
    return Listing(tuple(state), tuple(foreign))


def list_temporaries(storage: Storage) -> list[Leftover]:
    """Temporary files and probes in `ckpt` and its log. New ones may still be in use.

    Raises:
        StorageError: the location cannot be listed.
    """
    directories = ("", LOG.removeprefix(f"{CKPT}/"))
    return [
        _leftover(directory, file)
        for directory in directories
        for file in storage.list(in_location(directory) if directory else CKPT)
        if not file.is_directory and is_temporary(file.name)
    ]


def select_orphans(there: Iterable[Leftover], used: Set[str], before_ms: int | None = None) -> list[Leftover]:
    """The unreferenced files and directories.

    Args:
        there: the candidates, listed before `used` was read, so that no newer file is among them.
        used: paths of files that checkpoints refer to, `_metadata` included, relative to `ckpt`.
        before_ms: upper bound of the modification time; None for no bound.

    Raises:
        ModificationTimeUnknownError: the storage reports no modification time of an orphan.
    """
    orphans = [leftover for leftover in there if leftover.keeper not in used]
    if before_ms is None:
        return orphans
    old = []
    for orphan in orphans:
        if orphan.modified_ms is None:
            if orphan.is_directory:
                continue  # object stores have no empty directories: its last file vanished during the listing
            raise ModificationTimeUnknownError(in_location(orphan.path))
        if orphan.modified_ms < before_ms:
            old.append(orphan)
    return old


def _leftover(directory: str, file: FileInfo) -> Leftover:
    path = f"{directory}/{file.name}" if directory else file.name
    return Leftover(path, file.size, file.modified_ms, file.is_directory)


def _is_file_of_ours(directory: str, entry: FileInfo) -> bool:
    return not entry.is_directory and is_ours(directory, entry.name)


def _is_known(entry: FileInfo) -> bool:
    """True if we wrote an entry of `ckpt` other than a checkpoint's directory."""
    if entry.is_directory:
        return entry.name in _DIRECTORIES
    return entry.name in (IMPORT_MARKER, MIRROR_NOTE) or is_temporary(entry.name)
