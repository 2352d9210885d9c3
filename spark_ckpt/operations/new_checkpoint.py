"""A checkpoint that no batch has made, but an operation: its files, its `_metadata`, its record, in this order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from spark_ckpt.clock import Clock
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore, MetadataReference, Owner
from spark_ckpt.coordinator.batch_state import SegmentTable, SparkBatch
from spark_ckpt.coordinator.chains import ChainTable, all_entries
from spark_ckpt.coordinator.encode import encode_metadata
from spark_ckpt.coordinator.layout import in_location, metadata_path, new_merged_path
from spark_ckpt.coordinator.messages import Source
from spark_ckpt.coordinator.statistics import CheckpointStats, CheckpointStatus, StateSize
from spark_ckpt.coordinator.stats_state import statistics_states
from spark_ckpt.operations.spark_entries import OffsetEntry
from spark_ckpt.storage import Storage, create_or_find


@dataclass(frozen=True, slots=True)
class StateFile:
    """A state file to be written: its name relative to `ckpt`, and its bytes."""

    path: str
    data: bytes


def inline_state_in_file(table: ChainTable) -> StateFile | None:
    """Makes the segments of a table that are inline refer to one file, since several subtasks may need the same bytes.

    Returns:
        The file; None if no segment was inline.
    """
    inline = [entry for entry in all_entries(table) if entry.path is None]
    if not inline:
        return None
    file = StateFile(new_merged_path(), b"".join(entry.data for entry in inline))
    position = 0
    for entry in inline:
        entry.path, entry.file_size, entry.offsets = file.path, len(file.data), entry.offsets + position
        position += len(entry.data)
        entry.data = b""
    return file


def with_chains(batch: SparkBatch, table: ChainTable) -> SparkBatch:
    """The description of a batch with other chains of its stores."""
    stores = tuple(
        replace(
            store,
            rows=tuple(chain.rows for chain in table[store.key]),
            ckpt_ids=tuple(chain.ckpt_id for chain in table[store.key]),
            segments=SegmentTable.of(table[store.key]),
        )
        for store in batch.stores
    )
    return replace(batch, stores=stores)


def complete(
    storage: Storage,
    store: CompletedCheckpointStore,
    owner: Owner,
    batch: SparkBatch,
    table: ChainTable,
    offsets: OffsetEntry,
    history: Sequence[CheckpointStats],
    state: StateFile | None,
    started_ms: int,
    clock: Clock,
) -> CheckpointRecord:
    """Completes a checkpoint. When this returns, it is durable.

    Args:
        storage: of the checkpoint location.
        store: of its completed checkpoints, claimed.
        owner: the one that has claimed.
        batch: what it is a checkpoint of.
        table: the chains of all subtasks.
        offsets: Spark's entry of the offset log for the batch.
        history: statistics of the checkpoints before it.
        state: what of its state is not there yet.
        started_ms: when the operation began, in milliseconds since 1970 UTC.
        clock: where time comes from.

    Raises:
        FencedError, UnknownOutcomeError, StorageError: as `CompletedCheckpointStore.add` says.
    """
    new_bytes = 0
    if state is not None:
        storage.write_atomic(in_location(state.path), state.data)
        new_bytes = len(state.data)
    operators = batch.summaries()
    rows, size = sum(operator.rows for operator in operators), sum(operator.state_bytes for operator in operators)
    duration_ms = max(0, clock.now_ms() - started_ms)
    checkpoint_id = store.counter.get()
    stats = CheckpointStats(
        status=CheckpointStatus.COMPLETED,
        batch_id=batch.batch_id,
        version=batch.version,
        triggered_ms=started_ms,
        duration_ms=duration_ms,
        acks=0,
        expected=0,
        checkpoint_id=checkpoint_id,
        size=StateSize(size, new_bytes, rows),
    )
    sources = [Source(name, offsets.offsets.get(name)) for name in batch.sources]
    states = statistics_states((*history, stats), ())
    data = encode_metadata(checkpoint_id, batch, table, sources, offsets.encode(), states)
    paths = (metadata_path(checkpoint_id, attempt) for attempt in count(1))
    path = next(path for path in paths if create_or_find(storage, in_location(path), data))
    return store.add(
        lambda record_id, attempt: CheckpointRecord(
            id=record_id,
            generation=store.generation,
            owner=owner,
            attempt=attempt,
            batch_id=batch.batch_id,
            version=batch.version,
            timestamp_ms=clock.now_ms(),
            duration_ms=duration_ms,
            state_bytes=size,
            new_bytes=new_bytes + len(data),
            rows=rows,
            operators=operators,
            metadata=MetadataReference(path, len(data), hashlib.sha256(data).hexdigest()),
        )
    )
