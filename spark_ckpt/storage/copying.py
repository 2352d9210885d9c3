"""Copies of files of any size between storages, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import Storage

CHUNK_BYTES = 16 << 20
"""Bytes of a file held in memory at a time."""


def copy_file(source: Storage, name: str, target: Storage, target_name: str) -> int:
    """Copies a file and replaces any existing one.

    Args:
        source: storage of the file.
        name: name of the file in `source`.
        target: storage of the copy; may be the same storage.
        target_name: name of the copy in `target`.

    Returns:
        Size of the file in bytes.

    Raises:
        StateFileNotFoundError: the file does not exist.
        StorageError: the file cannot be read or written, or was truncated during the copy.
    """
    size = source.size(name)
    if size <= CHUNK_BYTES:
        data = source.read(name)
        target.write_atomic(target_name, data)
        return len(data)
    target.write_chunks(target_name, lambda: _chunks(source, name, size))
    return size


def _chunks(storage: Storage, name: str, size: int) -> Iterator[bytes]:
    for offset in range(0, size, CHUNK_BYTES):
        length = min(CHUNK_BYTES, size - offset)
        chunk = storage.read_range(name, offset, length)
        if len(chunk) != length:
            raise StorageError(storage.describe(name), "read", f"it ends at {offset + len(chunk)} of {size} bytes")
        yield chunk
