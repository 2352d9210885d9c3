"""From chains to `_metadata`, as the model of `spark_ckpt.metadata`, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from spark_ckpt.coordinator.batch_state import (
    SPARK_BATCH,
    SPARK_BATCH_VERSION,
    SPARK_OFFSETS,
    SPARK_OFFSETS_VERSION,
    SparkBatch,
    StoreState,
)
from spark_ckpt.coordinator.chains import Chain, ChainEntry, ChainTable
from spark_ckpt.coordinator.messages import PartitionFilter, Source
from spark_ckpt.errors import CheckpointError
from spark_ckpt.keygroups import overlapping_ranges
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    CheckpointMetadata,
    DistributionMode,
    KeyedStateHandle,
    KeyGroupRange,
    KeyGroupRangeOffsets,
    KeyGroupsStateHandle,
    MasterState,
    OperatorState,
    OperatorStreamStateHandle,
    OperatorSubtaskState,
    RelativeFileStateHandle,
    StateMetaInfo,
    StreamStateHandle,
)
from spark_ckpt.storage import resolve_relative

METADATA_VERSION = 3
"""Version of the files we write: the newest without Java-serialised properties; Flink 1.11 and later read it."""

SOURCE_OFFSETS = "source-offsets"
"""Name of the operator state of a source."""

NO_DATA = -1
"""Offset of a key group that has no entries (as in Flink's `KeyedStateCheckpointOutputStream`)."""


def operator_id_of(query_id: str, name: str) -> bytes:
    """The 16 bytes that name an operator in `_metadata`, the same over all runs of the query.

    Args:
        query_id: Spark's id of the query.
        name: `<operator>/<store>`, or `source/<index>`.
    """
    return hashlib.sha256(f"{query_id}/{name}".encode()).digest()[:16]


def compose(
    checkpoint_id: int,
    batch: SparkBatch,
    table: ChainTable,
    sources: Sequence[Source] = (),
    spark_offsets: bytes | None = None,
    statistics: Sequence[MasterState] = (),
) -> CheckpointMetadata:
    """The `_metadata` of a checkpoint.

    The keyed state of a subtask is one handle of code 3 where it is one segment, else a changelog handle (code 8) whose
    materialised list has the base and then the deltas: Flink's loader takes key-group handles there only. Only codes
    that every release since 1.11 knows are used. Of subtasks that read the same blocks, after a rescale, the first has
    the handle, and `spark-batch` says who shares it. `spark_ckpt.coordinator.encode` writes the same bytes, faster.

    Args:
        checkpoint_id: its number.
        batch: the content of the master state `spark-batch`.
        table: the chains of all subtasks.
        sources: with the offsets up to which the batch reads.
        spark_offsets: the bytes of Spark's `offsets/<batch>`.
        statistics: master states with statistics.
    """
    operators = [_store_operator(batch, store, table[store.key]) for store in batch.stores]
    operators += [
        source_operator(batch.query_id, index, source.offset, batch.max_parallelism)
        for index, source in enumerate(sources)
        if source.offset is not None
    ]
    return CheckpointMetadata(checkpoint_id, (*master_states(batch, spark_offsets), *statistics), tuple(operators))


def master_states(batch: SparkBatch, spark_offsets: bytes | None) -> list[MasterState]:
    """The master states that a new run needs."""
    states = [MasterState(SPARK_BATCH, batch.encode(), SPARK_BATCH_VERSION)]
    if spark_offsets is not None:
        states.append(MasterState(SPARK_OFFSETS, spark_offsets, SPARK_OFFSETS_VERSION))
    return states


def source_operator(query_id: str, index: int, offset: str, max_parallelism: int) -> OperatorState:
    """The offset of a source as operator state, with one element per partition of the source where the offset shows
    them.

    Args:
        query_id: Spark's id of the query.
        index: position of the source.
        offset: Spark's JSON text of it.
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
    """The parts of an offset: one for each `{topic: {partition: offset}}` if it has that form, as Kafka's, else one."""
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


@lru_cache(maxsize=4096)
def key_group_span(partition: int, parallelism: int, factors: tuple[int, ...]) -> KeyGroupRange:
    """The range from the first to the last key group of a subtask."""
    ranges = overlapping_ranges(partition, parallelism, factors)
    return KeyGroupRange(ranges[0].start, ranges[-1].end)


def full_offsets(entry: ChainEntry) -> tuple[int, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """First key group of a segment, and the offsets from there to the last one, `NO_DATA` for those without entries."""
    first, count = int(entry.key_groups[0]), int(entry.key_groups[-1]) - int(entry.key_groups[0]) + 1
    if count == entry.key_groups.size:
        return first, entry.offsets
    offsets = np.full(count, NO_DATA, np.int64)
    offsets[entry.key_groups - np.uint32(first)] = entry.offsets
    return first, offsets


def handle_name(entry: ChainEntry) -> str:
    """Name of an inline stream: informative only."""
    return f"{'base' if entry.is_base else 'delta'}-{entry.version}"


def relative_path(path: str) -> str:
    """Path of a state file as it stands in `_metadata`, which lies in `chk-<id>/`."""
    return f"../{path}"


def changelog_size(entries: Sequence[ChainEntry], version: int) -> int:
    """Bytes of those segments that the checkpoint of `version` has added."""
    return sum([entry.size for entry in entries if entry.version == version])


def changelog_id(chain: Chain) -> str:
    """Identity of the changelog handle of a chain: its ckpt id, written as a UUID."""
    digits = chain.ckpt_id
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _store_operator(batch: SparkBatch, store: StoreState, chains: Sequence[Chain]) -> OperatorState:
    subtasks = {}
    for partition, (chain, entries) in enumerate(zip(chains, store.segments.with_handles(chains), strict=True)):
        span = key_group_span(partition, store.parallelism, batch.key_group_factors)
        handle = _keyed_handle(chain, entries, batch.version, span)
        if handle is not None:
            subtasks[partition] = OperatorSubtaskState(managed_keyed_state=handle)
    name = f"{store.operator_id}/{store.store}"
    return OperatorState(operator_id_of(batch.query_id, name), store.parallelism, batch.max_parallelism, subtasks)


def _keyed_handle(
    chain: Chain, entries: Sequence[ChainEntry], version: int, span: KeyGroupRange
) -> KeyedStateHandle | None:
    handles = tuple(_segment_handle(entry) for entry in entries)
    if len(handles) <= 1:
        return handles[0] if handles else None
    return ChangelogStateBackendHandle(
        handles, (), span, changelog_size(entries, version), chain.base_version, changelog_id(chain)
    )


def _segment_handle(entry: ChainEntry) -> KeyGroupsStateHandle:
    stream: StreamStateHandle
    if entry.path is None:
        stream = ByteStreamStateHandle(handle_name(entry), entry.data)
    else:
        stream = RelativeFileStateHandle(relative_path(entry.path), entry.file_size)
    first, offsets = full_offsets(entry)
    return KeyGroupsStateHandle(KeyGroupRangeOffsets.of(first, offsets), stream)


# ---- and back --------------------------------------------------------------------------------------------------------


def spark_batch_of(metadata: CheckpointMetadata) -> SparkBatch:
    """The content of the master state `spark-batch`.

    Raises:
        CheckpointError: there is none, or it is not ours.
    """
    for state in metadata.master_states:
        if state.name == SPARK_BATCH:
            if state.version != SPARK_BATCH_VERSION:
                raise CheckpointError(
                    f"the master state {SPARK_BATCH} has version {state.version}, not {SPARK_BATCH_VERSION}"
                )
            return SparkBatch.decode(state.payload)
    raise CheckpointError(f"there is no master state {SPARK_BATCH}: spark-ckpt did not write this")


def decompose(metadata: CheckpointMetadata) -> tuple[SparkBatch, ChainTable]:
    """The chains of a `_metadata` that `compose` made.

    Raises:
        CheckpointError: it is not one of ours, or its parts do not fit one another.
        PathEscapeError: a state file lies outside the checkpoint's own directory.
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
    entries: list[ChainEntry] = []
    for partition, count in enumerate(segments.counts.tolist()):
        start, end = len(entries), len(entries) + count
        subtask = operator.subtask_states.get(partition)
        handles = _flatten(subtask.managed_keyed_state) if subtask else []
        if len(handles) != np.count_nonzero(shared[start:end] == 0):
            raise CheckpointError(
                f"{store.key}, partition {partition} has {len(handles)} segments, not as many as listed"
            )
        own = iter(handles)
        filters = segments.filters.get(partition) or [()] * count
        for i, (back, passed) in enumerate(zip(shared[start:end].tolist(), filters, strict=True), start):
            is_base, version, size = bool(segments.is_base[i]), int(segments.versions[i]), int(segments.sizes[i])
            if back:
                entries.append(entries[i - back].shared_as(is_base, version, size, passed))
            else:
                entries.append(_entry(next(own), is_base, version, size, passed))
        chains.append(Chain(store.ckpt_ids[partition], store.rows[partition], tuple(entries[start:])))
    return chains


def _flatten(handle: KeyedStateHandle | None) -> list[KeyGroupsStateHandle]:
    if handle is None:
        return []
    if isinstance(handle, KeyGroupsStateHandle):
        return [handle]
    if isinstance(handle, ChangelogStateBackendHandle) and not handle.non_materialized_state_handles:
        return [part for inner in handle.materialized_state_handles for part in _flatten(inner)]
    raise CheckpointError(f"a {type(handle).__name__} is no handle that spark-ckpt writes")


def _entry(
    handle: KeyGroupsStateHandle, is_base: bool, version: int, size: int, filters: tuple[PartitionFilter, ...]
) -> ChainEntry:
    offsets = handle.group_range_offsets.offsets
    present = np.flatnonzero(offsets != NO_DATA)
    key_groups = (present + handle.key_group_range.start).astype(np.uint32)
    stream = handle.delegate_state_handle
    if isinstance(stream, ByteStreamStateHandle):
        return ChainEntry(
            is_base, version, key_groups, offsets[present], size, None, len(stream.data), stream.data, filters
        )
    if isinstance(stream, RelativeFileStateHandle):
        # `_metadata` lies in ckpt/chk-<id>/, whatever the id is.
        path = resolve_relative("ckpt/chk", stream.relative_path, "ckpt").removeprefix("ckpt/")
        return ChainEntry(
            is_base, version, key_groups, offsets[present], size, path, stream.state_size, filters=filters
        )
    raise CheckpointError(f"a {type(stream).__name__} is no stream that spark-ckpt writes")
