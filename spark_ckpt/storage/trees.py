"""Directories with all that is below them."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.storage.base import Storage


def files_below(storage: Storage, directory: str, *, hidden: bool = False) -> Iterator[str]:
    """All files below a directory, in order.

    Args:
        storage: the storage.
        directory: name of the directory; empty for the whole storage.
        hidden: True for hidden files, too: temporary files, and checksums that Hadoop recreates.

    Raises:
        StorageError: a directory cannot be listed.
    """
    for entry in sorted(storage.list(directory), key=lambda entry: entry.name):
        if entry.name.startswith(".") and not hidden:
            continue
        name = _below(directory, entry.name)
        if entry.is_directory:
            yield from files_below(storage, name, hidden=hidden)
        else:
            yield name


def delete_tree(storage: Storage, directory: str) -> None:
    """Deletes a directory with all that it has; the root of the storage itself stays.

    Raises:
        StorageError: a directory cannot be listed, or a file cannot be deleted.
    """
    files = []
    for entry in storage.list(directory):
        name = _below(directory, entry.name)
        if entry.is_directory:
            delete_tree(storage, name)
        else:
            files.append(name)
    storage.delete_all(files)
    if directory:
        storage.remove_empty(directory)


def _below(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
