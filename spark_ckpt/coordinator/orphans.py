"""Files below `ckpt` that no completed checkpoint refers to: what there is, and which of it is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

from spark_ckpt.completed import LOG
from spark_ckpt.coordinator.layout import CKPT, SHARED, checkpoint_of_directory, in_location, without_checksum_suffix
from spark_ckpt.errors import ModificationTimeUnknownError
from spark_ckpt.metadata import METADATA_FILE_NAME
from spark_ckpt.storage import FileInfo, Storage

# What `spark_ckpt.storage` and the store's probe leave when their process is killed; and Hadoop's checksums.
_LEFTOVER = re.compile(r"\.tmp-[0-9a-f]+|probe-[0-9a-f]+|\..+\.crc")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file that may be an orphan, or a directory with nothing in it.

    Args:
        path: relative to `ckpt`.
        size: bytes.
        modified_ms: when it was last written, in milliseconds since 1970 UTC; None where the storage does not say.
        is_directory: whether it is one.
    """

    path: str
    size: int
    modified_ms: int | None
    is_directory: bool = False

    @property
    def kept_by(self) -> str:
        """The path whose being in use keeps this one: `_metadata` keeps its whole directory, a file its checksum."""
        directory, _, name = self.path.rpartition("/")
        if checkpoint_of_directory(self.path if self.is_directory else directory) is not None:
            return f"{self.path if self.is_directory else directory}/{METADATA_FILE_NAME}"
        return f"{directory}/{without_checksum_suffix(name)}"


def list_state(storage: Storage) -> list[Leftover]:
    """State files, and what is in the directories of checkpoints, in use or not.

    Raises:
        StorageError: the location cannot be listed.
    """
    found = [_leftover(SHARED, file) for file in storage.list(in_location(SHARED)) if not file.is_directory]
    for entry in storage.list(CKPT):
        if entry.is_directory and checkpoint_of_directory(entry.name) is not None:
            files = [file for file in storage.list(in_location(entry.name)) if not file.is_directory]
            found += [_leftover(entry.name, file) for file in files]
            if not files:
                found.append(Leftover(entry.name, 0, entry.modified_ms, is_directory=True))
    return found


def list_temporaries(storage: Storage) -> list[Leftover]:
    """Temporary files and probes in `ckpt` and its log, which may still be in use if they are new.

    Raises:
        StorageError: the location cannot be listed.
    """
    directories = ("", LOG.removeprefix(f"{CKPT}/"))
    return [
        _leftover(directory, file)
        for directory in directories
        for file in storage.list(in_location(directory) if directory else CKPT)
        if not file.is_directory and _LEFTOVER.fullmatch(file.name)
    ]


def select_orphans(there: Iterable[Leftover], used: Set[str], before_ms: int | None = None) -> list[Leftover]:
    """Those that nothing refers to.

    Args:
        there: what there is, listed before `used` was read: a file that comes later is not looked at.
        used: paths of files that checkpoints refer to, their `_metadata` included, relative to `ckpt`.
        before_ms: only what was last written before this time; None for all.

    Raises:
        ModificationTimeUnknownError: the storage does not say how old a file is that is an orphan.
    """
    orphans = [leftover for leftover in there if leftover.kept_by not in used]
    if before_ms is None:
        return orphans
    old = []
    for orphan in orphans:
        if orphan.modified_ms is None:
            if orphan.is_directory:
                continue  # an object store has none that is empty: the last file went while this was listed
            raise ModificationTimeUnknownError(in_location(orphan.path))
        if orphan.modified_ms < before_ms:
            old.append(orphan)
    return old


def _leftover(directory: str, file: FileInfo) -> Leftover:
    path = f"{directory}/{file.name}" if directory else file.name
    return Leftover(path, file.size, file.modified_ms)
