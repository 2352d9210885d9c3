"""From a pending checkpoint that is complete to a completed one: files, `_metadata`, record, in this order."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TypeAlias

from spark_ckpt.completed import CheckpointRecord, MetadataReference, OperatorSummary
from spark_ckpt.coordinator.batch_state import SegmentTable, SparkBatch, StoreState
from spark_ckpt.coordinator.chains import Chain, ChainEntry, ChainTable
from spark_ckpt.coordinator.encode import encode_metadata
from spark_ckpt.coordinator.layout import in_location, metadata_path, new_merged_path
from spark_ckpt.coordinator.loading import CheckpointState
from spark_ckpt.coordinator.messages import Ack, Segment, StoreKey, SubtaskKey, Trigger
from spark_ckpt.coordinator.opening import OpenJob
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.policy import Placement, place
from spark_ckpt.coordinator.statistics import (
    CheckpointStats,
    StateSize,
    StatsHistory,
    stats_of_completed,
    stats_of_subtasks,
)
from spark_ckpt.coordinator.stats_state import statistics_states
from spark_ckpt.errors import CheckpointError, FencedError, StateFileNotFoundError, StorageError, UnknownOutcomeError
from spark_ckpt.storage import CreateOutcome, Storage

_CREATE_TRIES = 3

_NewEntries: TypeAlias = tuple[ChainEntry | None, ChainEntry | None]
"""Delta and base that a subtask brings."""


@dataclass(slots=True)
class Draft:
    """A checkpoint in the making.

    Args:
        trigger: of its batch.
        pending: what it is made of.
        acks: of all its subtasks, as they were when it was begun.
        table: the chains of all subtasks, with the new segments.
        written: files that it has written, relative to `ckpt`.
        unused: files of acks that it does not need.
        new_bytes: bytes of all its new files.
        new_state_bytes: bytes of all its new segments.
        batch: the content of its master state.
        stats: what it took, as its `_metadata` has it.
    """

    trigger: Trigger
    pending: PendingCheckpoint
    acks: Mapping[SubtaskKey, Ack] = field(init=False)
    table: ChainTable = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    new_bytes: int = 0
    new_state_bytes: int = 0
    batch: SparkBatch | None = None
    stats: CheckpointStats | None = None

    def __post_init__(self) -> None:
        self.acks = dict(self.pending.acks)

    def completed(self, record: CheckpointRecord) -> CheckpointState:
        """The checkpoint, now that its record is durable."""
        return CheckpointState(record.version, record, self.batch, self.table)


def finalise(job: OpenJob, draft: Draft, base: CheckpointState, history: StatsHistory, now_ms: int) -> CheckpointState:
    """Completes a checkpoint. When this returns, it is durable.

    What a failed try has written is handed to the cleaner. If the outcome is unknown it stays, since the checkpoint may
    be complete; and if another driver has taken over, since that one may have found it complete.

    Args:
        job: the open job.
        draft: the checkpoint; only its trigger and what it is made of are set.
        base: the checkpoint that the batch started from.
        history: statistics of the checkpoints before it.
        now_ms: the time, in milliseconds since 1970 UTC.

    Raises:
        StorageError: something could not be written; it can be tried again.
        UnknownOutcomeError: the record may have been written.
        FencedError: another driver has taken over.
        CheckpointError: a state file that a task named is not there.
    """
    try:
        _add_segments(job, draft, base)
        draft.batch = _spark_batch(job, draft)
        operators = draft.batch.summaries()
        metadata = _write_metadata(job, draft, operators, history)
        record = job.store.add(
            lambda record_id, attempt: _record(job, draft, operators, metadata, record_id, attempt, now_ms)
        )
    except (UnknownOutcomeError, FencedError):
        raise
    except BaseException:
        job.cleaner.submit(in_location(path) for path in reversed(draft.written))
        raise
    return draft.completed(record)


# ---- state -----------------------------------------------------------------------------------------------------------


def _add_segments(job: OpenJob, draft: Draft, base: CheckpointState) -> None:
    """Puts the new segments into the chains, and those bytes into one file that came with the acks."""
    version = draft.trigger.version
    new: dict[SubtaskKey, _NewEntries] = {}
    deltas: list[tuple[Segment, ChainEntry]] = []
    bases: list[tuple[Segment, ChainEntry]] = []
    for key, ack in draft.acks.items():
        snapshot = ack.base
        base_entry = None if snapshot is None else _new_entry(True, snapshot.version, snapshot.segment, bases)
        # A base of the very state that is acknowledged makes the delta to it superfluous.
        has_delta = snapshot is None or snapshot.version < version
        if not has_delta and ack.delta.path is not None:
            draft.unused.append(ack.delta.path)
        new[key] = _new_entry(False, version, ack.delta, deltas) if has_delta else None, base_entry
    _check_files(job.storage, deltas + bases)
    kept = sum(chain.inline_bytes for chains in base.table.values() for chain in chains)
    _place(job, draft, deltas, bases, kept)
    for store, parallelism in _stores(draft.trigger):
        chains = []
        for partition, chain in enumerate(base.table.get(store) or [_NO_STATE] * parallelism):
            key = SubtaskKey(store.operator_id, store.store, partition)
            ack, (delta, base_entry) = draft.acks[key], new[key]
            base_version = ack.base.version if ack.base is not None else 0
            chains.append(chain.next(ack.ckpt_id, ack.rows, delta, base_entry, base_version))
        draft.table[store] = chains


def _new_entry(
    is_base: bool, version: int, segment: Segment, new: list[tuple[Segment, ChainEntry]]
) -> ChainEntry | None:
    if not segment.key_groups.size:
        return None
    offsets = segment.offsets + segment.start if segment.start else segment.offsets
    file_size = segment.size if segment.file_size is None else segment.file_size
    entry = ChainEntry(is_base, version, segment.key_groups, offsets, segment.size, segment.path, file_size)
    new.append((segment, entry))
    return entry


def _place(
    job: OpenJob,
    draft: Draft,
    deltas: list[tuple[Segment, ChainEntry]],
    bases: list[tuple[Segment, ChainEntry]],
    kept: int,
) -> None:
    """Decides where the bytes go that came with the acks; `kept` bytes of earlier checkpoints are inline already."""
    arrived = sum(segment.size for segment, _ in deltas + bases if segment.path is None)
    draft.new_state_bytes = sum(segment.size for segment, _ in deltas + bases)
    draft.new_bytes += draft.new_state_bytes - arrived
    if place(arrived, kept, job.config) is Placement.INLINE:
        for segment, entry in deltas + bases:
            if segment.path is None:
                entry.data = bytes(segment.data)
        return
    _write_merged(job.storage, draft, [new for new in deltas + bases if new[0].path is None])


def _write_merged(storage: Storage, draft: Draft, segments: list[tuple[Segment, ChainEntry]]) -> None:
    """Writes segments of many subtasks into one file: objects follow the bytes, not the partitions.

    Deltas and bases together: with bases staggered over the subtasks, a file of either is needed for as many batches.
    """
    path = new_merged_path()
    size = sum(segment.size for segment, _ in segments)
    position = 0
    for segment, entry in segments:
        entry.path, entry.file_size = path, size
        entry.offsets = entry.offsets + position
        position += segment.size
    draft.written.append(path)
    draft.new_bytes += size
    storage.write_atomic(in_location(path), b"".join(segment.data for segment, _ in segments))


def _check_files(storage: Storage, new: list[tuple[Segment, ChainEntry]]) -> None:
    """Makes sure that the files are whole that tasks have written themselves, where that is not certain."""
    if storage.writes_whole:
        return
    for path, expected in {entry.path: entry.file_size for _, entry in new if entry.path is not None}.items():
        name = storage.describe(in_location(path))
        try:
            size = storage.size(in_location(path))
        except StateFileNotFoundError:
            raise CheckpointError(f"{name}: a task has written this state file, and it is not there") from None
        if size != expected:
            raise CheckpointError(f"{name}: a task has written this state file with {expected} bytes; it has {size}")


# ---- metadata --------------------------------------------------------------------------------------------------------


def _spark_batch(job: OpenJob, draft: Draft) -> SparkBatch:
    trigger = draft.trigger
    stores = []
    for operator in trigger.operators:
        for name in operator.stores:
            chains = draft.table[StoreKey(operator.operator_id, name)]
            stores.append(
                StoreState(
                    operator.operator_id,
                    name,
                    operator.name,
                    operator.state_format_version,
                    tuple(chain.rows for chain in chains),
                    tuple(chain.ckpt_id for chain in chains),
                    SegmentTable.of(chains),
                )
            )
    return SparkBatch(
        batch_id=trigger.batch_id,
        version=trigger.version,
        query_id=trigger.query_id,
        run_id=trigger.job,
        query_name=trigger.query_name,
        spark_version=trigger.spark_version,
        checkpoint_format=trigger.checkpoint_format,
        max_parallelism=job.max_parallelism,
        key_group_factors=job.key_group_factors,
        sources=tuple(source.name for source in trigger.sources),
        stores=tuple(stores),
    )


def _write_metadata(
    job: OpenJob, draft: Draft, operators: tuple[OperatorSummary, ...], history: StatsHistory
) -> MetadataReference:
    """Writes `_metadata` to a name that no earlier try has used: what was asked for that one, creation or deletion, may
    still be carried out.

    Raises:
        FencedError: another driver has taken over.
        StorageError: it cannot be written.
    """
    assert draft.batch is not None
    checkpoint_id = job.store.counter.get()
    size = StateSize(
        sum(operator.state_bytes for operator in operators),
        draft.new_state_bytes,
        sum(operator.rows for operator in operators),
    )
    subtasks = stats_of_subtasks(draft.pending)
    draft.stats = stats_of_completed(draft.pending, checkpoint_id, size, subtasks)
    data = encode_metadata(
        checkpoint_id,
        draft.batch,
        draft.table,
        draft.trigger.sources,
        _spark_offsets(job.storage, draft.trigger),
        statistics_states(history.with_entry(draft.stats), subtasks),
    )
    paths = (metadata_path(checkpoint_id, attempt) for attempt in count(1))
    for path in (path for path in paths if not job.cleaner.was_submitted(in_location(path))):
        if _create_metadata(job.storage, draft, path, data):
            draft.new_bytes += len(data)
            return MetadataReference(path, len(data), hashlib.sha256(data).hexdigest())
        job.store.check_owner()
    raise AssertionError("names do not end")


def _create_metadata(storage: Storage, draft: Draft, path: str, data: bytes) -> bool:
    """Creates `_metadata` exclusively. False: the name is taken by what another driver, or a dead one, has written."""
    name = in_location(path)
    cause: BaseException | None = None
    for _ in range(_CREATE_TRIES):
        draft.written.append(path)
        result = storage.create_exclusive(name, data)
        if result.outcome is CreateOutcome.WON:
            return True
        cause = result.cause or cause
        try:
            there = storage.read(name)
        except StateFileNotFoundError:
            continue
        if there != data:
            draft.written = [written for written in draft.written if written != path]
        return there == data
    raise StorageError(storage.describe(name), "create", cause)


def _spark_offsets(storage: Storage, trigger: Trigger) -> bytes | None:
    """Spark's `offsets/<batch>`, which it writes before the batch runs; a store without a query has none."""
    if trigger.is_standalone:
        return None
    if trigger.offset_log is not None:
        return trigger.offset_log.encode()
    try:
        return storage.read(f"offsets/{trigger.batch_id}")
    except StateFileNotFoundError:
        return None


def _record(
    job: OpenJob,
    draft: Draft,
    operators: tuple[OperatorSummary, ...],
    metadata: MetadataReference,
    record_id: int,
    attempt: str,
    now_ms: int,
) -> CheckpointRecord:
    return CheckpointRecord(
        id=record_id,
        generation=job.store.generation,
        owner=job.owner,
        attempt=attempt,
        batch_id=draft.trigger.batch_id,
        version=draft.trigger.version,
        timestamp_ms=now_ms,
        duration_ms=max(0, now_ms - draft.pending.triggered_ms),
        state_bytes=sum(operator.state_bytes for operator in operators),
        new_bytes=draft.new_bytes,
        rows=sum(operator.rows for operator in operators),
        operators=operators,
        metadata=metadata,
    )


def _stores(trigger: Trigger) -> Iterator[tuple[StoreKey, int]]:
    for operator in trigger.operators:
        for name in operator.stores:
            yield StoreKey(operator.operator_id, name), operator.parallelism


_NO_STATE = Chain(uuid.UUID(int=0).hex, 0)
