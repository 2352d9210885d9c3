"""Spark's metadata of stateful operators after a rescale."""

from __future__ import annotations

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.spark_files.logs import SparkLog


def add_metadata(log: SparkLog, batch: SparkBatch, batch_id: int, partitions: int) -> None:
    """Writes the metadata of each operator that applies from a batch on.

    Metadata of version 1 is one file for all batches and stays unchanged, as with Spark's own repartition
    (`OfflineStateRepartitionRunner`).

    Args:
        log: Spark's files.
        batch: description of the batch before.
        batch_id: first batch with the new number of partitions.
        partitions: the new number.

    Raises:
        SparkLogEntryExistsError: another process has written metadata for the batch.
        SparkLogFormatError, StorageError: the metadata cannot be read or written.
    """
    for operator_id in sorted({store.operator_id for store in batch.stores}):
        metadata = log.operator_metadata(operator_id, batch_id - 1)
        if metadata is not None and metadata.version > 1:
            log.add_operator_metadata(batch_id, metadata.with_partitions(partitions))
