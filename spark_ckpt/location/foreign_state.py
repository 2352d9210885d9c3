"""State of another state-store provider in a checkpoint location."""

from __future__ import annotations

from spark_ckpt.storage import FileInfo, Storage

# Suffixes of files that Spark's own state stores write in a partition's directory, or in a store's directory below it.
_FOREIGN_SUFFIXES = (".delta", ".snapshot", ".changelog", ".zip")
_MAX_DIRECTORIES_LOOKED_AT = 8


def foreign_state(storage: Storage) -> str | None:
    """Path of a state file of another provider; None if the first few partitions have none."""
    for operator in _directories(storage, "state"):
        for partition in _directories(storage, operator):
            for directory in [partition, *_directories(storage, partition)]:
                for file in _files(storage, directory):
                    if file.name[:1].isdigit() and file.name.endswith(_FOREIGN_SUFFIXES):
                        return storage.describe(f"{directory}/{file.name}")
    return None


def _directories(storage: Storage, directory: str) -> list[str]:
    names = sorted(entry.name for entry in storage.list(directory) if entry.is_directory)
    return [f"{directory}/{name}" for name in names[:_MAX_DIRECTORIES_LOOKED_AT]]


def _files(storage: Storage, directory: str) -> list[FileInfo]:
    return [entry for entry in storage.list(directory) if not entry.is_directory]
