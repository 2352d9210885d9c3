"""Sizes of state files."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.storage import Storage

_AT_ONCE = 8


def sizes_of(storage: Storage, paths: Sequence[str]) -> list[int | None]:
    """Bytes of each file; None for a missing file. One request per file, several at a time on an object store.

    Args:
        storage: storage of the checkpoint location.
        paths: paths of the files, relative to `ckpt`.

    Raises:
        StorageError: the storage does not answer.
    """

    def size(path: str) -> int | None:
        try:
            return storage.size(in_location(path))
        except StateFileNotFoundError:
            return None

    if len(paths) < 2 or not storage.writes_whole:
        return [size(path) for path in paths]
    with ThreadPoolExecutor(min(_AT_ONCE, len(paths)), thread_name_prefix="spark-ckpt-sizes") as threads:
        return list(threads.map(size, paths))
