"""Rescale of a running query that has begun (docs/protocol.md, section 7): the newest entry of Spark's offset log has
the new number of partitions, and the checkpoint that its batch starts from still has the old one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.messages import Trigger
from spark_ckpt.rescaling.assignment import Assignment, assign
from spark_ckpt.rescaling.plan import plan_rescale
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry
from spark_ckpt.spark_files.logs import BatchLog, SparkLog, entry_name
from spark_ckpt.storage import Storage


def begun_rescale(storage: Storage, trigger: Trigger, parent: CheckpointState) -> Assignment | None:
    """State of a checkpoint by the partitions of the next batch, if a rescale has begun between the two. Writes
    nothing.

    A start takes the number from the offset log, whatever its session says (Spark: `OffsetSeqMetadata.setSessionConf`).

    Args:
        storage: storage of the checkpoint location.
        trigger: trigger of the batch.
        parent: the checkpoint.

    Raises:
        RescaleRefusedError: this state cannot have the number of partitions in the log.
        SparkLogFormatError, StateSchemaError, StorageError: a file of Spark's cannot be read.
    """
    batch = parent.batch
    if batch is None or trigger.version != parent.version + 1 or not any(trigger.rescaled(batch)):
        return None
    log = SparkLog(storage)
    try:
        before, begun = log.offsets(trigger.batch_id - 1), _entry_of(trigger, log)
    except StateFileNotFoundError:
        return None
    partitions = begun.shuffle_partitions
    # The command for stopped queries adds a batch that is the last one with another number, and finishes it itself.
    if partitions is None or begun == before.with_shuffle_partitions(partitions):
        return None
    plan = plan_rescale(storage.location, partitions, trigger.batch_id - 1, before, batch)
    assignment = assign(storage, parent, plan, repeatable=True)
    if trigger.checkpoint_format > 1 and not _is_of_run(parent, trigger):
        return _with_committed_ids(assignment, log.commit(trigger.batch_id - 1))
    return assignment


def _is_of_run(parent: CheckpointState, trigger: Trigger) -> bool:
    """True if the run that has asked for the rescale continues, with another side process."""
    return parent.record is not None and parent.record.owner.run_id == trigger.job


def _with_committed_ids(assignment: Assignment, commit: CommitEntry) -> Assignment:
    """The same states under the ids for which a new run asks, from Spark's commit log."""
    committed = commit.state_ids or {}
    table: ChainTable = {}
    stores_of: Counter[int] = Counter()
    for key, chains in assignment.table.items():
        position, partitions = stores_of[key.operator_id], committed.get(key.operator_id, ())
        stores_of[key.operator_id] += 1
        table[key] = [
            Chain(partitions[number][position], chain.rows, chain.entries) if number < len(partitions) else chain
            for number, chain in enumerate(chains)
        ]
    return replace(assignment, table=table)


def _entry_of(trigger: Trigger, log: SparkLog) -> OffsetEntry:
    if trigger.offset_log is None:
        return log.offsets(trigger.batch_id)
    return OffsetEntry.decode(trigger.offset_log.encode(), entry_name(BatchLog.OFFSETS, trigger.batch_id))
