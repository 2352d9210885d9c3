"""Finalization: from a fully acknowledged pending checkpoint to a completed one."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from spark_ckpt.checkpoint.batch import SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.policy import Placement, place
from spark_ckpt.checkpoint.publish import NewCheckpoint, StateFile, merge_into_file
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.checkpoint.state_files import sizes_of
from spark_ckpt.checkpoint.statistics import CheckpointStats, StateSize, StatsHistory
from spark_ckpt.checkpoint.statistics_state import statistics_states
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.completed.errors import FencedError, UnknownOutcomeError
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.statistics import stats_of_completed, stats_of_subtasks
from spark_ckpt.errors import CheckpointError, StateFileNotFoundError
from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.format.segment_ref import Blocks, SegmentRef
from spark_ckpt.messages import Ack, BaseSnapshot, MergedDeltas, Trigger
from spark_ckpt.metadata import MasterState
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_NewEntries: TypeAlias = tuple[SegmentRef | None, SegmentRef | None, SegmentRef | None]
"""New delta, new base and merged delta of a subtask."""


@dataclass(slots=True)
class Draft:
    """A checkpoint in the making.

    Args:
        trigger: trigger of its batch.
        pending: pending checkpoint.
        recent: recently started batches.
        acks: acks of all subtasks when the draft was created.
        table: chains of all subtasks, with the new segments.
        file: file of new segments to write; None if there are none.
        unused: files of acks that the checkpoint does not use.
        task_bytes: bytes of the new segments in files written by tasks.
        new_state_bytes: bytes of all new segments.
        batch: content of its master state.
        stats: statistics in its `_metadata`.
    """

    trigger: Trigger
    pending: PendingCheckpoint
    recent: Container[int]
    acks: dict[SubtaskKey, Ack] = field(init=False)
    table: ChainTable = field(default_factory=dict)
    file: StateFile | None = None
    unused: list[str] = field(default_factory=list)
    task_bytes: int = 0
    new_state_bytes: int = 0
    batch: SparkBatch | None = None
    stats: CheckpointStats | None = None

    def __post_init__(self) -> None:
        self.acks = dict(self.pending.acks)

    def completed(self, record: CheckpointRecord) -> CheckpointState:
        """Completed checkpoint with its durable record."""
        return CheckpointState(record.version, record, self.batch, self.table)


def finalize(
    job: OpenJob, draft: Draft, parent: CheckpointState, history: StatsHistory, now_ms: int
) -> CheckpointState:
    """Complete a checkpoint, which is durable on return.

    The cleaner deletes the files of a failed try. They stay if the outcome is unknown, because the checkpoint may be
    complete, and if another driver has taken over, because that driver may have found it complete.

    Args:
        job: open job.
        draft: checkpoint with only its trigger and pending checkpoint set.
        parent: checkpoint that the batch started from.
        history: statistics of earlier checkpoints.
        now_ms: current time, milliseconds since 1970 UTC.

    Raises:
        StorageError: a write failed; it can be retried.
        UnknownOutcomeError: the record may have been written.
        FencedError: another driver has taken over.
        CheckpointError: a state file of an ack is missing.
    """
    _add_segments(job, draft, parent)
    draft.batch = _spark_batch(job, draft)
    new = NewCheckpoint(
        draft.batch,
        draft.table,
        draft.trigger.sources,
        partial(_spark_offsets, job.storage, draft.trigger),
        partial(_statistics, draft, history),
        draft.pending.triggered_ms,
        draft.new_state_bytes,
        draft.task_bytes,
        draft.file,
    )
    publisher = job.publisher()
    try:
        return draft.completed(publisher.publish(new, now_ms))
    except (UnknownOutcomeError, FencedError):
        raise
    except BaseException:
        job.cleaner.submit(in_location(path) for path in reversed(publisher.written))
        raise


# ---- state -----------------------------------------------------------------------------------------------------------


def _add_segments(job: OpenJob, draft: Draft, parent: CheckpointState) -> None:
    """Append the new segments to the chains, and merge the bytes that came with the acks into one file."""
    _leave_out_lost_bases(job, draft)
    deltas: list[SegmentRef] = []
    bases: list[SegmentRef] = []
    new = _new_entries(draft, deltas, bases)
    _check_files(job.storage, deltas)
    kept = sum(chain.inline_bytes for chains in parent.table.values() for chain in chains)
    _place(job, draft, deltas, bases, kept)
    _add_chains(draft, parent, new)


def _new_entries(draft: Draft, deltas: list[SegmentRef], bases: list[SegmentRef]) -> dict[SubtaskKey, _NewEntries]:
    """Entries of the acked segments, which are added to `deltas` and `bases`."""
    version = draft.trigger.version
    new: dict[SubtaskKey, _NewEntries] = {}
    for key, ack in draft.acks.items():
        snapshot = ack.base
        base_entry = None if snapshot is None else _entry(snapshot.segment, bases)
        # A base of the acknowledged state replaces the delta.
        has_delta = snapshot is None or snapshot.version < version
        if not has_delta and ack.delta.path is not None:
            draft.unused.append(ack.delta.path)
        merged_entry = None if ack.merged is None else _entry(ack.merged.segment, bases)
        new[key] = _entry(ack.delta, deltas) if has_delta else None, base_entry, merged_entry
    return new


def _add_chains(draft: Draft, parent: CheckpointState, new: Mapping[SubtaskKey, _NewEntries]) -> None:
    """Chains of the new checkpoint: those of the parent, with the new entries."""
    for store, parallelism in _stores(draft.trigger):
        chains = []
        for partition, chain in enumerate(parent.table.get(store) or [_NO_STATE] * parallelism):
            key = SubtaskKey(store.operator_id, store.store, partition)
            ack, (delta, base_entry, merged_entry) = draft.acks[key], new[key]
            base_version = ack.base.version if ack.base is not None else 0
            chains.append(chain.next(ack.state_id, ack.rows, delta, base_entry, base_version, merged_entry))
        draft.table[store] = chains


def _entry(segment: SegmentRef, new: list[SegmentRef]) -> SegmentRef | None:
    """Segment for a chain; None without rows. One without a file is a copy: a later try may place it elsewhere."""
    if not segment.key_groups.size:
        return None
    entry = segment if segment.path is not None else segment.copied()
    new.append(entry)
    return entry


def _place(job: OpenJob, draft: Draft, deltas: list[SegmentRef], bases: list[SegmentRef], kept: int) -> None:
    """Place the bytes that came with the acks; `kept` bytes of earlier checkpoints are already inline."""
    new = deltas + bases
    inline = [entry for entry in new if entry.path is None]
    arrived = sum(entry.size for entry in inline)
    draft.new_state_bytes = sum(entry.size for entry in new)
    draft.task_bytes = draft.new_state_bytes - arrived
    if place(arrived, kept, job.config) is Placement.INLINE:
        for entry in inline:
            blocks = entry.blocks
            # Without the message that they came with.
            entry.blocks = Blocks(blocks.key_groups, blocks.offsets, bytes(blocks.data))
        return
    # Deltas and bases share a file: with bases staggered over the subtasks, both kinds are needed for as many batches.
    draft.file = merge_into_file(inline)


def _leave_out_lost_bases(job: OpenJob, draft: Draft) -> None:
    """Drop bases and merged deltas whose file is missing or truncated, and keep the deltas. A base may wait for its ack
    for days, and a garbage collection may delete it as an orphan meanwhile.

    On storages that write whole files, those of recent batches are not checked: garbage collection spares files that
    young. That saves a request for nearly every base.
    """
    compacted: dict[str | None, tuple[SubtaskKey, BaseSnapshot | MergedDeltas]] = {
        result.segment.path: (key, result)
        for key, ack in draft.acks.items()
        for result in (ack.base, ack.merged)
        if result is not None
    }
    is_whole = job.storage.writes_whole
    paths = [
        path
        for path, (_, base) in compacted.items()
        if path is not None and not (is_whole and base.version in draft.recent)
    ]
    for path, size in zip(paths, sizes_of(job.storage, paths), strict=True):
        key, base = compacted[path]
        if size == base.segment.size:
            continue
        there = "the file is missing" if size is None else f"the file has {size} bytes, not {base.segment.size}"
        what = "base snapshot" if isinstance(base, BaseSnapshot) else "merged deltas"
        _log.warning("%s: ignoring the %s %s of version %d: %s", key, what, path, base.version, there)
        ack = draft.acks[key]
        draft.acks[key] = replace(ack, base=None) if isinstance(base, BaseSnapshot) else replace(ack, merged=None)
        if size is not None:
            draft.unused.append(path)


def _check_files(storage: Storage, new: list[SegmentRef]) -> None:
    """Check the size of deltas written by tasks, on storages that may leave partial files."""
    if storage.writes_whole:
        return
    written = {entry.path: entry.file_size for entry in new if entry.path is not None}
    for (path, expected), size in zip(written.items(), sizes_of(storage, list(written)), strict=True):
        name = storage.describe(in_location(path))
        if size is None:
            raise CheckpointError(f"{name}: this state file, written by a task, is missing")
        if size != expected:
            raise CheckpointError(f"{name}: this state file has {size} bytes; a task wrote {expected}")


# ---- metadata --------------------------------------------------------------------------------------------------------


def _spark_batch(job: OpenJob, draft: Draft) -> SparkBatch:
    trigger = draft.trigger
    stores = []
    for operator in trigger.operators:
        for name in operator.stores:
            chains = draft.table[StoreKey(operator.operator_id, name)]
            title, fmt, table = operator.name, operator.state_format_version, SegmentTable.of(chains)
            rows, state_ids = tuple(chain.rows for chain in chains), tuple(chain.state_id for chain in chains)
            stores.append(StoreState(operator.operator_id, name, title, fmt, rows, state_ids, table))
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
        log=job.config.store if job.store.fences else None,
        meaning=job.meaning,
    )


def _statistics(draft: Draft, history: StatsHistory, checkpoint_id: int, size: StateSize) -> tuple[MasterState, ...]:
    subtasks = stats_of_subtasks(draft.pending)
    draft.stats = stats_of_completed(draft.pending, checkpoint_id, size, subtasks)
    return statistics_states(history.with_entry(draft.stats), subtasks)


def _spark_offsets(storage: Storage, trigger: Trigger) -> bytes | None:
    """Spark's `offsets/<batch>`, which exists before the batch runs; None for a store without a query."""
    if trigger.is_standalone:
        return None
    if trigger.offset_log is not None:
        return trigger.offset_log.encode()
    try:
        return storage.read(f"offsets/{trigger.batch_id}")
    except StateFileNotFoundError:
        return None


def _stores(trigger: Trigger) -> Iterator[tuple[StoreKey, int]]:
    for operator in trigger.operators:
        for name in operator.stores:
            yield StoreKey(operator.operator_id, name), operator.parallelism


_NO_STATE = Chain(uuid.UUID(int=0).hex, 0)
