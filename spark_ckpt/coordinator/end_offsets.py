"""End offsets of a batch in real-time mode, which Spark knows after the batch (Spark:
`MicroBatchExecution.markMicroBatchEnd`)."""

from __future__ import annotations

from dataclasses import replace

from spark_ckpt.checkpoint.batch import Source
from spark_ckpt.messages import Trigger
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import BatchLog, entry_name


def with_end_offsets(trigger: Trigger, offset_log: str) -> Trigger:
    """Copy of a trigger with the end offsets of its batch.

    Args:
        trigger: trigger of the batch.
        offset_log: text of `offsets/<batch>`.

    Raises:
        SparkLogFormatError: the text is not an entry of Spark's offset log.
    """
    entry = OffsetEntry.decode(offset_log.encode(), entry_name(BatchLog.OFFSETS, trigger.batch_id))
    names = sorted(entry.offsets) if entry.version > 1 else list(entry.offsets)
    sources = tuple(Source(name, entry.offsets[name]) for name in names)
    return replace(trigger, sources=sources, offset_log=offset_log)
