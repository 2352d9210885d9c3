"""Comparison of Spark's own logs with a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.checkpoint.batch import SPARK_OFFSETS, STANDALONE_PREFIX, SparkBatch
from spark_ckpt.checkpoint.compose import offset_elements, operator_id_of
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.location.savepoint import is_savepoint
from spark_ckpt.metadata import ByteStreamStateHandle, CheckpointMetadata
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.recovery.start_check import Start, check_start
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.errors import SparkLogFormatError
from spark_ckpt.spark_files.evolved import files_at
from spark_ckpt.spark_files.logs import QUERY, BatchLog, SparkBatches, SparkLog, entry_name
from spark_ckpt.storage import Storage


def check_agreement(
    storage: Storage,
    state: CheckpointState,
    metadata: CheckpointMetadata,
    *,
    is_newest_of_version: bool,
    needs_settings: bool = True,
    is_repeated_from: bool = False,
) -> Iterator[Damage]:
    """Contradictions between Spark's files and a checkpoint, and damage that a start after its batch would meet. Some
    may come twice.

    Args:
        storage: storage of the checkpoint location.
        state: the checkpoint.
        metadata: its `_metadata`.
        is_newest_of_version: True if no later checkpoint has the same version: only then Spark's logs agree with its
            offsets and state ids.
        needs_settings: False if a start takes no settings from the offsets of its batch: it has those of a later batch,
            or of the checkpoint itself.
        is_repeated_from: True if the next start restores the checkpoint and repeats the batch after its own, so that it
            reads the entries of these two batches only.

    Raises:
        StorageError: the storage does not answer.
    """
    batch = state.batch
    assert batch is not None
    if batch.run_id.startswith(STANDALONE_PREFIX):
        return  # a store without a query: Spark has no logs
    log = SparkLog(storage)
    try:
        if (query_id := log.query_id()) != batch.query_id:
            yield Damage(storage.describe(QUERY), f"it names query {query_id}, the checkpoint {batch.query_id}")
    except (StateFileNotFoundError, SparkLogFormatError) as e:
        yield Damage.of(storage.describe(QUERY), e)
    batches = SparkBatches.of(log)
    if is_newest_of_version:
        # A batch that runs again in real-time mode has other input than the run that did not commit it.
        yield from _check_offsets(storage, log, batches, batch, metadata, needs_settings)
    yield from _check_commit(storage, log, batches, state, is_newest_of_version)
    if (batches.can_follow(batch.batch_id) and not is_repeated_from) or is_savepoint(storage):
        yield from check_start(files_at(storage, batch.batch_id), Start.after(batch.batch_id), batch)


def _check_offsets(
    storage: Storage,
    log: SparkLog,
    batches: SparkBatches,
    batch: SparkBatch,
    metadata: CheckpointMetadata,
    needs_settings: bool,
) -> Iterator[Damage]:
    name = entry_name(BatchLog.OFFSETS, batch.batch_id)
    path = storage.describe(name)
    if batch.batch_id not in batches.started:
        # In real-time mode the checkpoint completes before the offsets are written.
        is_uncommitted = batch.batch_id == batches.last_committed + 1
        if not is_uncommitted and not _is_purged(batches.started, batch.batch_id):
            yield Damage(path, "Spark's offsets of the batch are missing")
        return
    try:
        data, entry = storage.read(name), log.offsets(batch.batch_id)
    except (StateFileNotFoundError, SparkLogFormatError) as e:
        yield Damage.of(path, e)
        return
    recorded = recorded_offsets(metadata)
    if recorded is not None and recorded != data:
        right = OffsetEntry.decode(recorded, f"{SPARK_OFFSETS} in the checkpoint")
        if not needs_settings:
            right = right.without_settings()
        is_repeated = needs_settings and batch.batch_id > batches.last_committed
        if not entry.acts_as(right, is_repeated=is_repeated):
            yield Damage(path, "the offsets differ from those in the checkpoint")
    if sorted(_sources_in(metadata, batch)) != sorted(_sources_of(entry)):
        yield Damage(path, "the source offsets differ from the operator states of the checkpoint")


def recorded_offsets(metadata: CheckpointMetadata) -> bytes | None:
    """Spark's offsets of the batch as a checkpoint has them; None if it has none."""
    return next((state.payload for state in metadata.master_states if state.name == SPARK_OFFSETS), None)


def _check_commit(
    storage: Storage, log: SparkLog, batches: SparkBatches, state: CheckpointState, is_newest_of_version: bool
) -> Iterator[Damage]:
    batch = state.batch
    assert batch is not None
    path = storage.describe(entry_name(BatchLog.COMMITS, batch.batch_id))
    if batch.batch_id not in batches.committed:
        # The checkpoint completes before the commit, and a start reads the newest commit only, if there is one.
        is_uncommitted = batch.batch_id > batches.last_committed if batches.committed else batch.batch_id == 0
        if not is_uncommitted and not _is_purged(batches.committed, batch.batch_id):
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
        for partition, state_id in enumerate(store.state_ids):
            if partition >= len(partitions) or state_id not in partitions[partition]:
                subtask = SubtaskKey(store.operator_id, store.store, partition)
                yield Damage(path, f"it does not name state id {state_id} of the checkpoint", subtask=subtask)


def _is_purged(there: tuple[int, ...], batch_id: int) -> bool:
    return bool(there) and batch_id < there[0]


def _sources_in(metadata: CheckpointMetadata, batch: SparkBatch) -> Iterator[bytes]:
    """The offsets of the sources in the operator states of a checkpoint."""
    ids = {operator_id_of(batch.query_id, f"source/{index}") for index in range(len(batch.sources))}
    for operator in metadata.operator_states:
        if operator.operator_id in ids:
            for subtask in operator.subtask_states.values():
                handle = subtask.managed_operator_state
                if handle is not None and isinstance(handle.delegate_state_handle, ByteStreamStateHandle):
                    yield handle.delegate_state_handle.data


def _sources_of(entry: OffsetEntry) -> Iterator[bytes]:
    """The offsets in Spark's log."""
    for offset in entry.offsets.values():
        if offset is not None:
            yield "".join(offset_elements(offset)).encode()
