"""Encoding of `_metadata` from chains, without a model object per handle.

A batch changes one segment of a subtask and keeps a dozen. Encoding all handles each time would dominate the cost of a
checkpoint on the driver, so each segment caches the bytes of its handle. A test compares the bytes with those of
`spark_ckpt.metadata`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from spark_ckpt.checkpoint.batch import Source, SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.compose import (
    METADATA_VERSION,
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
from spark_ckpt.metadata import CheckpointMetadata, KeyGroupRange, MasterState, dumps

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_KEY_GROUP_RANGE = struct.Struct(">ii")
_CHANGELOG_START = struct.Struct(">iiqi")
_CHANGELOG_END = struct.Struct(">iq")

_KEY_GROUPS_HANDLE, _CHANGELOG_HANDLE = b"\x03", b"\x08"
_BYTE_STREAM, _RELATIVE_FILE = b"\x01", b"\x06"

# Subtask: no managed and no raw operator state before the keyed state; no raw keyed state and no channels after it.
_BEFORE_KEYED_STATE = _I32.pack(0) + _I32.pack(0)
_AFTER_KEYED_STATE = b"\x00" + _I32.pack(0) + _I32.pack(0)
_NO_COORDINATOR_STATE = b"\x00"


def encode_metadata(
    checkpoint_id: int,
    batch: SparkBatch,
    table: ChainTable,
    sources: Sequence[Source] = (),
    spark_offsets: bytes | None = None,
    statistics: Sequence[MasterState] = (),
) -> bytes:
    """Bytes of a checkpoint's `_metadata`.

    The keyed state of a subtask with one segment is a handle of code 3. With several segments it is a changelog handle
    (code 8) with base and deltas in its materialised list, the only place where Flink's loader accepts key-group
    handles. Every release since 1.11 knows the codes used. After a rescale, several subtasks may read the same blocks:
    the first has the handle, and `spark-batch` lists the others.

    Args:
        checkpoint_id: checkpoint id.
        batch: content of the master state `spark-batch`.
        table: chains of all subtasks.
        sources: sources with the end offsets of the batch.
        spark_offsets: bytes of Spark's `offsets/<batch>`.
        statistics: master states with statistics.

    Raises:
        MetadataTooLargeError: no reader would accept it.
    """
    rest = CheckpointMetadata(
        checkpoint_id,
        (*master_states(batch, spark_offsets), *statistics),
        tuple(
            source_operator(batch.query_id, index, source.offset, batch.max_parallelism)
            for index, source in enumerate(sources)
            if source.offset is not None
        ),
    )
    # Operators come last in a file of this version: ours go between their count and the sources.
    start = dumps(CheckpointMetadata(checkpoint_id, rest.master_states), version=METADATA_VERSION)
    encoded_sources = dumps(rest, version=METADATA_VERSION)[len(start) :]
    parts = [start[: -_I32.size], _I32.pack(len(batch.stores) + len(rest.operator_states))]
    for store in batch.stores:
        _append_operator(parts, batch, store, table[store.key])
    parts.append(encoded_sources)
    return b"".join(parts)


def _append_operator(parts: list[bytes], batch: SparkBatch, store: StoreState, chains: Sequence[Chain]) -> None:
    parts.append(operator_id_of(batch.query_id, f"{store.operator_id}/{store.store}"))
    parts.append(_I32.pack(store.parallelism) + _I32.pack(batch.max_parallelism) + _NO_COORDINATOR_STATE)
    with_handles = list(store.segments.with_handles(chains))
    parts.append(_I32.pack(sum(1 for entries in with_handles if entries)))
    for partition, (chain, entries) in enumerate(zip(chains, with_handles, strict=True)):
        if not entries:
            continue
        parts.append(_I32.pack(partition) + _BEFORE_KEYED_STATE)
        if len(entries) == 1:
            parts.append(entries[0].encoded or encode_entry(entries[0]))
        else:
            span = key_group_span(partition, store.parallelism, batch.key_group_factors)
            _append_changelog(parts, chain, entries, batch.version, span)
        parts.append(_AFTER_KEYED_STATE)


def _append_changelog(
    parts: list[bytes], chain: Chain, entries: Sequence[SegmentRef], version: int, span: KeyGroupRange
) -> None:
    size = changelog_size(entries, version)
    parts.append(_CHANGELOG_HANDLE + _CHANGELOG_START.pack(span.start, len(span), size, len(entries)))
    parts += [entry.encoded or encode_entry(entry) for entry in entries]
    parts.append(_CHANGELOG_END.pack(0, chain.base_version) + _utf(chain.state_id))


def encode_entry(entry: SegmentRef) -> bytes:
    """Bytes of a segment's handle, cached in it."""
    first, offsets = full_offsets(entry)
    if entry.path is None:
        stream = _BYTE_STREAM + _utf(handle_name(entry)) + _I32.pack(len(entry.data)) + entry.data
    else:
        stream = _RELATIVE_FILE + _utf(relative_path(entry.path)) + _I64.pack(entry.file_size)
    handle = _KEY_GROUPS_HANDLE + _KEY_GROUP_RANGE.pack(first, offsets.size) + offsets.astype(">i8").tobytes() + stream
    if entry.path is not None:
        entry.keep(handle)  # inline bytes would be in memory twice
    return handle


def _utf(text: str) -> bytes:
    data = text.encode("ascii")
    return len(data).to_bytes(2, "big") + data
