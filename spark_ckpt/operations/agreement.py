"""Whether Spark's own logs say the same of a batch as its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_ckpt.coordinator.batch_state import SPARK_OFFSETS, SparkBatch
from spark_ckpt.coordinator.compose import offset_elements, operator_id_of
from spark_ckpt.coordinator.loading import CheckpointState
from spark_ckpt.coordinator.messages import STANDALONE_PREFIX, SubtaskKey
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.metadata import ByteStreamStateHandle, CheckpointMetadata
from spark_ckpt.operations.damage import Damage
from spark_ckpt.operations.errors import SparkLogFormatError
from spark_ckpt.operations.spark_entries import OffsetEntry
from spark_ckpt.operations.spark_log import QUERY, BatchLog, SparkLog, entry_name
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class SparkBatches:
    """The batches that Spark's logs have, ascending.

    Args:
        started: those of the offset log.
        committed: those of the commit log.
    """

    started: tuple[int, ...]
    committed: tuple[int, ...]

    @classmethod
    def of(cls, log: SparkLog) -> SparkBatches:
        """What there is. Commits are listed first: each of them has its offsets.

        Raises:
            StorageError: a log cannot be listed.
        """
        committed = tuple(log.batches(BatchLog.COMMITS))
        return cls(tuple(log.batches(BatchLog.OFFSETS)), committed)

    @property
    def last_committed(self) -> int:
        """The last batch that Spark has committed; -1 if there is none."""
        return self.committed[-1] if self.committed else -1

    def can_follow(self, batch_id: int) -> bool:
        """Whether Spark can go on after a batch: it reads its commit, its offsets, and those of the batch before
        (`MicroBatchExecution.populateStartOffsets`). Entries of old batches are purged (`minBatchesToRetain`).
        """
        offsets = {batch_id, max(0, batch_id - 1)}
        return batch_id in self.committed and offsets <= set(self.started)


def check_agreement(
    storage: Storage, state: CheckpointState, metadata: CheckpointMetadata, *, is_newest_of_version: bool
) -> Iterator[Damage]:
    """What of Spark's files contradicts a checkpoint, or is missing beside it.

    Args:
        storage: of the checkpoint location.
        state: the checkpoint.
        metadata: its `_metadata`.
        is_newest_of_version: whether no later checkpoint is of the same version: only then its states are those that
            Spark counts.

    Raises:
        StorageError: the storage does not answer.
    """
    batch = state.batch
    assert batch is not None
    if batch.run_id.startswith(STANDALONE_PREFIX):
        return  # a store that no query is behind: Spark has no logs of it
    log = SparkLog(storage)
    try:
        if (query_id := log.query_id()) != batch.query_id:
            yield Damage(storage.describe(QUERY), f"it names query {query_id}, the checkpoint is of {batch.query_id}")
    except (StateFileNotFoundError, SparkLogFormatError) as e:
        yield Damage.of(storage.describe(QUERY), e)
    batches = SparkBatches.of(log)
    yield from _check_offsets(storage, log, batches, batch, metadata)
    yield from _check_commit(storage, log, batches, state, is_newest_of_version)


def _check_offsets(
    storage: Storage, log: SparkLog, batches: SparkBatches, batch: SparkBatch, metadata: CheckpointMetadata
) -> Iterator[Damage]:
    name = entry_name(BatchLog.OFFSETS, batch.batch_id)
    path = storage.describe(name)
    if batch.batch_id not in batches.started:
        if not _is_purged(batches.started, batch.batch_id):
            yield Damage(path, "Spark's offsets of the batch are missing")
        return
    try:
        data, entry = storage.read(name), log.offsets(batch.batch_id)
    except (StateFileNotFoundError, SparkLogFormatError) as e:
        yield Damage.of(path, e)
        return
    recorded = next((state.payload for state in metadata.master_states if state.name == SPARK_OFFSETS), data)
    if recorded != data:
        yield Damage(path, "the offsets are not those that the checkpoint has of the batch")
    if sorted(_sources_in(metadata, batch)) != sorted(_sources_of(entry)):
        yield Damage(path, "the sources are not where the checkpoint's operator states say")


def _check_commit(
    storage: Storage, log: SparkLog, batches: SparkBatches, state: CheckpointState, is_newest_of_version: bool
) -> Iterator[Damage]:
    batch = state.batch
    assert batch is not None
    path = storage.describe(entry_name(BatchLog.COMMITS, batch.batch_id))
    if batch.batch_id not in batches.committed:
        # The checkpoint comes first: the last batch may not be committed yet, or may never be.
        is_last = batch.batch_id == batches.last_committed + 1
        if not is_last and not _is_purged(batches.committed, batch.batch_id):
            yield Damage(path, "Spark's commit of the batch is missing")
        return
    try:
        ids = log.commit(batch.batch_id).state_ids
    except (StateFileNotFoundError, SparkLogFormatError) as e:
        yield Damage.of(path, e)
        return
    if ids is None or not is_newest_of_version:
        return
    for store in batch.stores:
        partitions = ids.get(store.operator_id, ())
        for partition, ckpt_id in enumerate(store.ckpt_ids):
            if partition >= len(partitions) or ckpt_id not in partitions[partition]:
                subtask = SubtaskKey(store.operator_id, store.store, partition)
                yield Damage(path, f"it does not name state {ckpt_id}, which the checkpoint has", subtask=subtask)


def _is_purged(there: tuple[int, ...], batch_id: int) -> bool:
    return bool(there) and batch_id < there[0]


def _sources_in(metadata: CheckpointMetadata, batch: SparkBatch) -> Iterator[bytes]:
    """The offsets of the sources as the operator states of a checkpoint have them."""
    ids = {operator_id_of(batch.query_id, f"source/{index}") for index in range(len(batch.sources))}
    for operator in metadata.operator_states:
        if operator.operator_id in ids:
            for subtask in operator.subtask_states.values():
                handle = subtask.managed_operator_state
                if handle is not None and isinstance(handle.delegate_state_handle, ByteStreamStateHandle):
                    yield handle.delegate_state_handle.data


def _sources_of(entry: OffsetEntry) -> Iterator[bytes]:
    """The same from Spark's log."""
    for offset in entry.offsets.values():
        if offset is not None:
            yield "".join(offset_elements(offset)).encode()
