"""Creating a file where nobody else may be creating it."""

from __future__ import annotations

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, Storage


def create_or_find(storage: Storage, name: str, data: bytes) -> bool:
    """Creates a file exclusively, and finds out what a lost or unknown outcome means.

    Returns:
        Whether the file is there with exactly these bytes; False if there is another one in its place.

    Raises:
        StorageError: it could not be created, or the storage does not say whether it was.
        ExclusiveCreateUnsupportedError: this storage cannot do it.
    """
    result = storage.create_exclusive(name, data)
    if result.outcome is CreateOutcome.WON:
        return True
    try:
        # A client that repeats a request may be told "exists" of its own file.
        if storage.read(name) == data:
            return True
    except StorageError:
        pass
    if result.outcome is CreateOutcome.LOST:
        return False
    raise StorageError(storage.describe(name), "create", result.cause) from result.cause
