"""Composition of `_metadata` from chains, and decomposition back into chains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from spark_ckpt.checkpoint.batch import (
    SPARK_BATCH,
    SPARK_BATCH_VERSION,
    SPARK_OFFSETS,
    SPARK_OFFSETS_VERSION,
    SparkBatch,
    StoreState,
)
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.layout import CKPT, SHARED
from spark_ckpt.checkpoint.meaning import SPARK_QUERY, SPARK_QUERY_VERSION
from spark_ckpt.errors import CheckpointError, UnsupportedFormatError
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_ref import Blocks, SegmentRef
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    CheckpointMetadata,
    DistributionMode,
    KeyedStateHandle,
    KeyGroupsStateHandle,
    MasterState,
    OperatorState,
    OperatorStreamStateHandle,
    OperatorSubtaskState,
    RelativeFileStateHandle,
    StateMetaInfo,
)
from spark_ckpt.storage.paths import state_path

METADATA_VERSION = 3
"""Version of written `_metadata`: the newest without Java-serialised properties. Flink 1.11 and later read it."""

SOURCE_OFFSETS = "source-offsets"
"""Name of the operator state of a source."""

NO_DATA = -1
"""Offset of a key group without entries (as in Flink's `KeyedStateCheckpointOutputStream`)."""

_FEW = 16
"""Key groups of a segment that are looked at one by one as quickly as by numpy."""


def operator_id_of(query_id: str, name: str) -> bytes:
    """Operator id in `_metadata`: 16 bytes, stable across runs of the query.

    Args:
        query_id: Spark's id of the query.
        name: `<operator>/<store>`, or `source/<index>`.
    """
    return hashlib.sha256(f"{query_id}/{name}".encode()).digest()[:16]


def master_states(batch: SparkBatch, spark_offsets: bytes | None) -> list[MasterState]:
    """Master states that a new run needs."""
    states = [MasterState(SPARK_BATCH, batch.encode(), SPARK_BATCH_VERSION)]
    if spark_offsets is not None:
        states.append(MasterState(SPARK_OFFSETS, spark_offsets, SPARK_OFFSETS_VERSION))
    if batch.meaning is not None:
        states.append(MasterState(SPARK_QUERY, batch.meaning, SPARK_QUERY_VERSION))
    return states


def source_operator(query_id: str, index: int, offset: str, max_parallelism: int) -> OperatorState:
    """Offset of a source as operator state, with one element per source partition if the offset lists them.

    Args:
        query_id: Spark's id of the query.
        index: position of the source.
        offset: offset in Spark's JSON.
        max_parallelism: number of key groups of the query.
    """
    elements = [element.encode() for element in offset_elements(offset)]
    starts = np.cumsum([0, *(len(element) for element in elements)])[:-1]
    handle = OperatorStreamStateHandle(
        {SOURCE_OFFSETS: StateMetaInfo(tuple(int(start) for start in starts), DistributionMode.SPLIT_DISTRIBUTE)},
        ByteStreamStateHandle(f"{SOURCE_OFFSETS}-{index}", b"".join(elements)),
    )
    subtasks = {0: OperatorSubtaskState(managed_operator_state=handle)}
    return OperatorState(operator_id_of(query_id, f"source/{index}"), 1, max_parallelism, subtasks)


def offset_elements(offset: str) -> list[str]:
    """Parts of an offset: one per partition for Kafka's `{topic: {partition: offset}}`, else the whole offset."""
    try:
        topics = json.loads(offset)
    except ValueError:
        return [offset]
    if (
        not isinstance(topics, dict)
        or not topics
        or not all(isinstance(parts, dict) and parts for parts in topics.values())
    ):
        return [offset]
    if not all(name.isdigit() and isinstance(at, int) for parts in topics.values() for name, at in parts.items()):
        return [offset]
    return [
        json.dumps({topic: {name: at}}, separators=(",", ":"))
        for topic, parts in topics.items()
        for name, at in parts.items()
    ]


def full_offsets(entry: SegmentRef) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """First key group of a segment, and the offsets of all key groups from there to the last; `NO_DATA` for gaps."""
    first, count = int(entry.key_groups[0]), int(entry.key_groups[-1]) - int(entry.key_groups[0]) + 1
    if count == entry.key_groups.size:
        return first, entry.offsets
    offsets = np.full(count, NO_DATA, np.int64)
    offsets[entry.key_groups - np.uint32(first)] = entry.offsets
    return first, offsets


def handle_name(entry: SegmentRef) -> str:
    """Name of an inline stream: informative only."""
    return f"{'base' if entry.is_base else 'delta'}-{entry.version}"


def relative_path(path: str) -> str:
    """Path of a state file relative to `_metadata`, which is in `chk-<id>/`."""
    return f"../{path}"


def changelog_size(entries: Sequence[SegmentRef], version: int) -> int:
    """Bytes of the segments that the checkpoint of `version` added."""
    return sum([entry.size for entry in entries if entry.version == version])


def spark_batch_of(metadata: CheckpointMetadata) -> SparkBatch:
    """Decoded master state `spark-batch`.

    Raises:
        CheckpointError: missing or malformed.
        UnsupportedFormatError: a later release wrote it with features that this release would misread.
    """
    for state in metadata.master_states:
        if state.name == SPARK_BATCH:
            if state.version != SPARK_BATCH_VERSION:
                raise UnsupportedFormatError(
                    f"the master state {SPARK_BATCH}", f"version {state.version} of its format"
                )
            return replace(SparkBatch.decode(state.payload), meaning=_meaning_of(metadata))
    raise CheckpointError(f"no master state {SPARK_BATCH}: this `_metadata` was not written by spark-ckpt")


def _meaning_of(metadata: CheckpointMetadata) -> bytes | None:
    """Payload of the master state `spark-query`; None without it, or in a version of a later release."""
    for state in metadata.master_states:
        if (state.name, state.version) == (SPARK_QUERY, SPARK_QUERY_VERSION):
            return state.payload
    return None


def decompose(metadata: CheckpointMetadata) -> tuple[SparkBatch, ChainTable]:
    """Batch and chains of a `_metadata` written by `encode_metadata`.

    Raises:
        CheckpointError: not written by spark-ckpt, or inconsistent.
        PathEscapeError: a state file outside the checkpoint's own directory.
    """
    batch = spark_batch_of(metadata)
    operators = {operator.operator_id: operator for operator in metadata.operator_states}
    table: ChainTable = {}
    for store in batch.stores:
        operator = operators.get(operator_id_of(batch.query_id, f"{store.operator_id}/{store.store}"))
        if operator is None or operator.parallelism != store.parallelism:
            raise CheckpointError(f"{store.key} has no operator state of parallelism {store.parallelism}")
        table[store.key] = _chains_of(store, operator)
    return batch, table


def _chains_of(store: StoreState, operator: OperatorState) -> list[Chain]:
    segments, chains = store.segments, []
    shared = segments.shared if segments.shared.size else np.zeros(segments.sizes.size, np.int64)
    entries: list[SegmentRef] = []
    columns = (segments.first_versions, segments.versions, segments.sizes, segments.flags)
    first_versions, versions, sizes, flags = (column.tolist() for column in columns)
    for partition, count in enumerate(segments.counts.tolist()):
        start, end = len(entries), len(entries) + count
        subtask = operator.subtask_states.get(partition)
        handles = _flatten(subtask.managed_keyed_state) if subtask else []
        if len(handles) != np.count_nonzero(shared[start:end] == 0):
            raise CheckpointError(
                f"{store.key}, partition {partition} has {len(handles)} segments, which differs from the segment table"
            )
        own = iter(handles)
        filters = segments.filters.get(partition) or [()] * count
        for i, (back, passed) in enumerate(zip(shared[start:end].tolist(), filters, strict=True), start):
            rest = (first_versions[i], versions[i], sizes[i], passed, flags[i])
            entries.append(entries[i - back].shared_as(*rest) if back else _entry(next(own), *rest))
        chains.append(Chain(store.state_ids[partition], store.rows[partition], tuple(entries[start:])))
    return chains


def state_files_of(metadata: CheckpointMetadata) -> set[str]:
    """State files of a `_metadata` written by `encode_metadata`, relative to `ckpt`, without its chains.

    Raises:
        CheckpointError: not written by spark-ckpt.
        UnsupportedFormatError: a later release wrote it with features that this release would misread.
        PathEscapeError: a state file outside the checkpoint's own directory.
    """
    spark_batch_of(metadata)  # which refuses others
    handles = (
        handle
        for operator in metadata.operator_states
        for subtask in operator.subtask_states.values()
        for handle in _flatten(subtask.managed_keyed_state)
    )
    streams = (handle.delegate_state_handle for handle in handles)
    names = {stream.relative_path for stream in streams if isinstance(stream, RelativeFileStateHandle)}
    return {state_path(name, f"{CKPT}/{SHARED}") for name in names}


def _flatten(handle: KeyedStateHandle | None) -> list[KeyGroupsStateHandle]:
    if handle is None:
        return []
    if isinstance(handle, KeyGroupsStateHandle):
        return [handle]
    if isinstance(handle, ChangelogStateBackendHandle) and not handle.non_materialized_state_handles:
        return [part for inner in handle.materialized_state_handles for part in _flatten(inner)]
    raise CheckpointError(f"unexpected state handle {type(handle).__name__}: spark-ckpt does not write it")


def _entry(
    handle: KeyGroupsStateHandle,
    first_version: int,
    version: int,
    size: int,
    filters: tuple[PartitionFilter, ...],
    flags: int,
) -> SegmentRef:
    offsets = handle.group_range_offsets.offsets
    start = handle.key_group_range.start
    # Most segments have few key groups, and no gaps between them.
    if offsets.size <= _FEW and NO_DATA not in offsets.tolist():
        key_groups = np.arange(start, start + offsets.size, dtype=np.uint32)
    else:
        present = np.flatnonzero(offsets != NO_DATA)
        key_groups, offsets = (present + start).astype(np.uint32), offsets[present]
    stream = handle.delegate_state_handle
    path, file_size, data = None, 0, b""
    if isinstance(stream, ByteStreamStateHandle):
        file_size, data = len(stream.data), stream.data
    elif isinstance(stream, RelativeFileStateHandle):
        # `_metadata` is in ckpt/chk-<id>/ for every id.
        path, file_size = state_path(stream.relative_path, f"{CKPT}/{SHARED}"), stream.state_size
    else:
        raise CheckpointError(f"unexpected stream handle {type(stream).__name__}: spark-ckpt does not write it")
    blocks = Blocks(key_groups, offsets, data)
    return SegmentRef(first_version, version, blocks, size, path, file_size, filters, flags)
