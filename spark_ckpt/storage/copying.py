"""Copying a file from one storage to another, of any size, without holding more than a part of it."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import Storage

CHUNK_BYTES = 16 << 20
"""Bytes of a file held at a time."""


def copy_file(source: Storage, name: str, target: Storage, target_name: str) -> int:
    """Copies a file, in place of one that may be there.

    Args:
        source: where it is.
        name: its name there.
        target: where the copy is to be, which may be the same storage.
        target_name: the name of the copy.

    Returns:
        Its bytes.

    Raises:
        StateFileNotFoundError: there is no such file.
        StorageError: it cannot be read or written, or became shorter meanwhile.
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
