"""The last batch of a stopped query: its entries in Spark's logs, and its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from spark_ckpt.checkpoint.batch import state_ids
from spark_ckpt.checkpoint.errors import StateIdMismatchError
from spark_ckpt.checkpoint.load import CheckpointState, load_checkpoint, version_not_found
from spark_ckpt.completed import CompletedCheckpointStore
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.spark_files.entries import CommitEntry, OffsetEntry, names_states
from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.storage import Storage

Refuse: TypeAlias = Callable[[str], SparkCkptError]
"""Makes the error of an operation from the reason why it is impossible."""


@dataclass(frozen=True, slots=True)
class SparkLogs:
    """The last batch of a query in Spark's logs.

    Args:
        committed: the last committed batch.
        offsets: its entry of the offset log.
        commit: its entry of the commit log.
        begun: entry of the offset log for the next batch, if it has begun.
    """

    committed: int
    offsets: OffsetEntry
    commit: CommitEntry
    begun: OffsetEntry | None = None


def read_logs(log: SparkLog, refuse: Refuse) -> SparkLogs:
    """The last batch in Spark's logs.

    Args:
        log: Spark's logs.
        refuse: makes the error.

    Raises:
        SparkCkptError: as `refuse` makes it: no batch is committed, or several have begun since.
        SparkLogFormatError, StorageError: an entry cannot be read.
    """
    commits = log.batches(BatchLog.COMMITS)
    if not commits:
        raise refuse("the query has not committed any batch yet")
    committed = commits[-1]
    later = [batch_id for batch_id in log.batches(BatchLog.OFFSETS) if batch_id > committed]
    if later and later != [committed + 1]:
        raise refuse(f"batches {later[0]} to {later[-1]} have begun, but batch {committed} is the last committed one")
    begun = log.offsets(later[0]) if later else None
    return SparkLogs(committed, log.offsets(committed), log.commit(committed), begun)


def checkpoint_of_last_batch(storage: Storage, store: CompletedCheckpointStore, logs: SparkLogs) -> CheckpointState:
    """The checkpoint of the last committed batch, with its description.

    Args:
        storage: storage of the checkpoint location.
        store: its completed-checkpoint store, recovered.
        logs: the batch in Spark's logs.

    Raises:
        VersionNotFoundError, DamagedCheckpointError: no undamaged checkpoint of the batch.
        StateIdMismatchError: Spark's commit and that checkpoint belong to different runs.
        StorageError: the checkpoint cannot be read.
    """
    version = logs.committed + 1
    record = store.latest_of_version(version)
    if record is None:
        raise version_not_found(storage, version, store.all())
    state = load_checkpoint(storage, record, store.all())
    assert state.batch is not None
    ids = logs.commit.state_ids
    if ids and not names_states(ids, state_ids(state.batch)):
        raise StateIdMismatchError(
            f"{storage.location}: Spark's commit of batch {logs.committed} names other state ids than checkpoint "
            f"{record.id}, the newest of that batch: the two belong to different runs. Roll back to a batch on which "
            "both agree"
        )
    return state
