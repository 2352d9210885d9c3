"""Why a location has no checkpoint of a version."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.checkpoint.load import version_not_found
from spark_ckpt.completed import LOG, CheckpointRecord
from spark_ckpt.config import STORE
from spark_ckpt.errors import LogMissingError, SavepointLocationError, SparkCkptError
from spark_ckpt.location.errors import ForeignStateError
from spark_ckpt.location.foreign_state import foreign_state
from spark_ckpt.location.listing import checkpoint_directories, scan
from spark_ckpt.location.savepoint import is_savepoint
from spark_ckpt.storage import Storage


def why_missing(
    storage: Storage, version: int, retained: Sequence[CheckpointRecord], *, is_query: bool
) -> SparkCkptError:
    """Why no retained checkpoint has the version that a batch starts from.

    Args:
        storage: storage of the checkpoint location.
        version: the version, at least 1.
        retained: the retained checkpoints.
        is_query: False for a store without a query, which has no log.

    Raises:
        StorageError: the storage does not answer.
    """
    if retained:
        return version_not_found(storage, version, retained, "")
    if (found := foreign_state(storage)) is not None:
        return ForeignStateError(storage.location, found, version)
    if is_savepoint(storage):
        return SavepointLocationError(storage.location)
    if is_query and (log := scan(storage).log) is not None:
        return LogMissingError(storage.describe(LOG), log)
    hint = ""
    if checkpoint_directories(storage):
        hint = f"It has checkpoints of a query that used another store: set {STORE.key} to that store"
    return version_not_found(storage, version, retained, hint)
