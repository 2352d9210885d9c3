"""The `_metadata` of a checkpoint in the model of `spark_ckpt.metadata`: the reference for `encode_metadata`."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.checkpoint.batch import Source, SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.compose import (
    changelog_size,
    full_offsets,
    handle_name,
    master_states,
    operator_id_of,
    relative_path,
    source_operator,
)
from spark_ckpt.format.key_groups import key_group_span
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    CheckpointMetadata,
    KeyedStateHandle,
    KeyGroupRange,
    KeyGroupRangeOffsets,
    KeyGroupsStateHandle,
    MasterState,
    OperatorState,
    OperatorSubtaskState,
    RelativeFileStateHandle,
    StreamStateHandle,
)


def compose(
    checkpoint_id: int,
    batch: SparkBatch,
    table: ChainTable,
    sources: Sequence[Source] = (),
    spark_offsets: bytes | None = None,
    statistics: Sequence[MasterState] = (),
) -> CheckpointMetadata:
    """The `_metadata` of a checkpoint; `encode_metadata` with the same arguments must produce its bytes."""
    operators = [_store_operator(batch, store, table[store.key]) for store in batch.stores]
    operators += [
        source_operator(batch.query_id, index, source.offset, batch.max_parallelism)
        for index, source in enumerate(sources)
        if source.offset is not None
    ]
    return CheckpointMetadata(checkpoint_id, (*master_states(batch, spark_offsets), *statistics), tuple(operators))


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
    chain: Chain, entries: Sequence[SegmentRef], version: int, span: KeyGroupRange
) -> KeyedStateHandle | None:
    handles = tuple(_segment_handle(entry) for entry in entries)
    if len(handles) <= 1:
        return handles[0] if handles else None
    return ChangelogStateBackendHandle(
        handles, (), span, changelog_size(entries, version), chain.base_version, chain.state_id
    )


def _segment_handle(entry: SegmentRef) -> KeyGroupsStateHandle:
    stream: StreamStateHandle
    if entry.path is None:
        stream = ByteStreamStateHandle(handle_name(entry), bytes(entry.data))
    else:
        stream = RelativeFileStateHandle(relative_path(entry.path), entry.file_size)
    first, offsets = full_offsets(entry)
    return KeyGroupsStateHandle(KeyGroupRangeOffsets.of(first, offsets), stream)
