"""Missing checkpoints, as proved by Spark's own logs."""

from __future__ import annotations

from spark_ckpt.config import PROVIDER_CLASS, PROVIDER_KEY
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.metadata import METADATA_FILE_NAME
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.logs import QUERY, SparkBatches, SparkLog
from spark_ckpt.storage import Storage


def batch_without_checkpoint(storage: Storage) -> int | None:
    """The batch whose checkpoint the next start needs, by Spark's logs alone.

    If the location has no checkpoint, its checkpoints are lost.

    Returns:
        The batch. None if a start begins with batch 0, or the query has no state or another state-store provider.

    Raises:
        StorageError: the storage does not answer.
    """
    log = SparkLog(storage)
    batches = SparkBatches.of(log)
    if batches.start_needs < 0 or not _is_ours(log, batches.started[-1]) or not log.operators():
        return None
    return None if _is_copy(storage) else batches.start_needs


def may_be_ours(storage: Storage) -> bool:
    """True if a location without checkpoints may belong to a query with our state store: it has completed none yet, or
    has lost them.

    Raises:
        StorageError: the storage does not answer.
    """
    if not storage.exists(QUERY) or _is_copy(storage):
        return False
    log = SparkLog(storage)
    batches = SparkBatches.of(log)
    if not batches.started:
        return not batches.committed
    return _is_ours(log, batches.started[-1]) and (batches.start_needs < 0 or bool(log.operators()))


def _is_ours(log: SparkLog, batch_id: int) -> bool:
    """True if the offset log names our state store, as it does even for a query without state."""
    try:
        return log.offsets(batch_id).conf.get(PROVIDER_KEY) == PROVIDER_CLASS
    except (StateFileNotFoundError, SparkLogFormatError):
        return False


def _is_copy(storage: Storage) -> bool:
    """True for a savepoint, complete or interrupted."""
    return storage.exists(METADATA_FILE_NAME)
