"""Durable writes of every checkpoint, of a batch or an operation: state file, `_metadata`, record, in this order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from spark_ckpt.checkpoint.batch import Source, SparkBatch
from spark_ckpt.checkpoint.chains import ChainTable, all_entries
from spark_ckpt.checkpoint.encode import encode_metadata
from spark_ckpt.checkpoint.layout import in_location, metadata_path, new_merged_path
from spark_ckpt.checkpoint.segment_table import SegmentTable
from spark_ckpt.checkpoint.statistics import CheckpointStats, CheckpointStatus, StateSize
from spark_ckpt.checkpoint.statistics_state import statistics_states
from spark_ckpt.completed import (
    CheckpointRecord,
    CompletedCheckpointStore,
    MetadataReference,
    Owner,
    operation_of,
)
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.metadata import MasterState
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.storage import Storage, create_or_find

_CREATE_TRIES = 3


@dataclass(frozen=True, slots=True)
class StateFile:
    """State file before it is written.

    Args:
        path: path of the file, relative to `ckpt`.
        data: bytes of the file.
    """

    path: str
    data: bytes


@dataclass(slots=True)
class NewCheckpoint:
    """Checkpoint that is not durable yet.

    Args:
        batch: content of the master state `spark-batch`.
        table: chains of all subtasks.
        sources: sources with the end offsets of the batch.
        spark_offsets: reads the bytes of Spark's `offsets/<batch>`; returns None without a query.
        statistics: builds the master states with statistics from the checkpoint's id and size.
        triggered_ms: start of the batch or operation, in milliseconds since 1970 UTC.
        new_state_bytes: bytes of the new segments.
        task_bytes: bytes of the new segments in files that tasks have written.
        file: state file with new segments; None if there are none to write.
    """

    batch: SparkBatch
    table: ChainTable
    sources: Sequence[Source]
    spark_offsets: Callable[[], bytes | None]
    statistics: Callable[[int, StateSize], Sequence[MasterState]]
    triggered_ms: int
    new_state_bytes: int = 0
    task_bytes: int = 0
    file: StateFile | None = None


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publisher of the checkpoints of one location.

    Args:
        storage: storage of the checkpoint location.
        store: its completed checkpoints, claimed.
        owner: claimant of the store.
        was_deleted: returns True for a path, relative to `ckpt`, whose deletion may still be in flight.
        written: files that it has started to write, relative to `ckpt`. Requests for them may still be in flight after
            an error.
    """

    storage: Storage
    store: CompletedCheckpointStore
    owner: Owner
    was_deleted: Callable[[str], bool] = lambda path: False
    written: list[str] = field(default_factory=list)

    def publish(self, new: NewCheckpoint, now_ms: int, evolved: int | None = None) -> CheckpointRecord:
        """Make a checkpoint durable. It does not exist before this call, and is durable once the call returns.

        After any error other than `UnknownOutcomeError` or `FencedError`, nothing refers to the files in `written`.

        Args:
            new: checkpoint.
            now_ms: current time, in milliseconds since 1970 UTC.
            evolved: the last batch before the evolution that the checkpoint is of; None for any other checkpoint.

        Raises:
            FencedError, UnknownOutcomeError, StorageError: as documented for `CompletedCheckpointStore.add`.
        """
        if new.file is not None:
            self.written.append(new.file.path)
            self.storage.write_atomic(in_location(new.file.path), new.file.data)
        operators = new.batch.summaries()
        rows, size = sum(operator.rows for operator in operators), sum(operator.state_bytes for operator in operators)
        metadata = self._write_metadata(new, StateSize(size, new.new_state_bytes, rows))
        file_bytes = 0 if new.file is None else len(new.file.data)
        return self.store.add(
            lambda record_id, attempt: CheckpointRecord(
                id=record_id,
                generation=self.store.generation,
                owner=self.owner,
                attempt=attempt,
                batch_id=new.batch.batch_id,
                version=new.batch.version,
                timestamp_ms=now_ms,
                duration_ms=max(0, now_ms - new.triggered_ms),
                state_bytes=size,
                new_bytes=new.task_bytes + file_bytes + metadata.size,
                rows=rows,
                operators=operators,
                metadata=metadata,
                evolved=self._evolved(new.batch.batch_id) if evolved is None else evolved,
            )
        )

    def _evolved(self, batch_id: int) -> int | None:
        """The last batch before the newest evolution, if it is earlier than this batch, and a retained checkpoint is
        from before it."""
        newest = self.store.latest()
        if newest is None or newest.evolved is None:
            return None
        is_between = self.store.all()[0].batch_id <= newest.evolved < batch_id
        return newest.evolved if is_between else None

    def _write_metadata(self, new: NewCheckpoint, size: StateSize) -> MetadataReference:
        checkpoint_id = self.store.counter.get()
        states = new.statistics(checkpoint_id, size)
        data = encode_metadata(checkpoint_id, new.batch, new.table, new.sources, new.spark_offsets(), states)
        return self.create_metadata(checkpoint_id, data)

    def create_metadata(self, checkpoint_id: int, data: bytes) -> MetadataReference:
        """Write `_metadata` under a name that no earlier attempt has used, because late requests may still create or
        delete the files of those attempts.

        Args:
            checkpoint_id: next id of the store.
            data: content of the file.

        Raises:
            FencedError: another driver has claimed the location.
            StorageError: the file cannot be written.
        """
        paths = (metadata_path(checkpoint_id, attempt) for attempt in count(1))
        for path in (path for path in paths if path not in self.written and not self.was_deleted(path)):
            self.written.append(path)
            if create_file(self.storage, in_location(path), data):
                return MetadataReference.of(path, data)
            self.written.remove(path)
            self.store.check_owner()
        raise AssertionError("names do not end")


def checkpoint_of_operation(
    batch: SparkBatch,
    table: ChainTable,
    offsets: OffsetEntry,
    history: Sequence[CheckpointStats],
    file: StateFile | None,
    started_ms: int,
    now_ms: int,
) -> NewCheckpoint:
    """Checkpoint of a batch that an operation adds to the query. No subtask acknowledges it.

    Args:
        batch: content of the master state `spark-batch`.
        table: chains of all subtasks.
        offsets: entry of Spark's offset log for the batch.
        history: statistics of earlier checkpoints.
        file: state file with new segments; None if there are none to write.
        started_ms: start of the operation, in milliseconds since 1970 UTC.
        now_ms: current time, in milliseconds since 1970 UTC.
    """

    def statistics(checkpoint_id: int, size: StateSize) -> Sequence[MasterState]:
        stats = CheckpointStats(
            status=CheckpointStatus.COMPLETED,
            batch_id=batch.batch_id,
            version=batch.version,
            triggered_ms=started_ms,
            duration_ms=max(0, now_ms - started_ms),
            acks=0,
            expected=0,
            checkpoint_id=checkpoint_id,
            size=size,
            operation=operation_of(batch.run_id),
        )
        return statistics_states((*history, stats), ())

    sources = [Source(name, offsets.offsets.get(name)) for name in batch.sources]
    new_bytes = 0 if file is None else len(file.data)
    return NewCheckpoint(batch, table, sources, offsets.encode, statistics, started_ms, new_bytes, file=file)


def create_file(storage: Storage, name: str, data: bytes) -> bool:
    """Create a file of a checkpoint exclusively. If the response is lost, check whether the file was created.

    Returns:
        False if another process, possibly a dead one, created a file of this name.

    Raises:
        StorageError: the file could not be created, or the outcome is unknown.
    """
    return create_or_find(storage, name, data, _CREATE_TRIES)


def merge_into_file(segments: Sequence[SegmentRef]) -> StateFile | None:
    """Place segments in one new file, so that the number of objects depends on their bytes, not on the partitions.

    Args:
        segments: segments without a file.

    Returns:
        File to write; None without segments.
    """
    if not segments:
        return None
    file = StateFile(new_merged_path(), b"".join(segment.data for segment in segments))
    position = 0
    for segment in segments:
        size = len(segment.data)
        segment.place_in(file.path, len(file.data), position)
        position += size
    return file


def inline_state_in_file(table: ChainTable) -> StateFile | None:
    """Place the inline segments of a table in one new file, since several subtasks may need the same bytes.

    Returns:
        File to write; None if no segment was inline.
    """
    return merge_into_file([segment for segment in all_entries(table) if segment.path is None])


def with_chains(batch: SparkBatch, table: ChainTable) -> SparkBatch:
    """Copy of a batch description with other chains."""
    stores = tuple(
        replace(
            store,
            rows=tuple(chain.rows for chain in table[store.key]),
            state_ids=tuple(chain.state_id for chain in table[store.key]),
            segments=SegmentTable.of(table[store.key]),
        )
        for store in batch.stores
    )
    return replace(batch, stores=stores)
