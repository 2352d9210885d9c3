"""Encoder of state handles; `handle_decoder`, its counterpart, describes the layouts.

Flink: `MetadataV2V3SerializerBase.serialize*Handle`. Flink always writes the newest code of a class; here, the handle
determines the code (see `codes`). The functions below write the fields after the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spark_ckpt.metadata.codes import code_of
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.metadata.handle_decoder import NULL_HANDLE
from spark_ckpt.metadata.handles import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    ChangelogStateHandleStreamImpl,
    EmptySegmentFileStateHandle,
    FileMergingOperatorStreamStateHandle,
    FileStateHandle,
    HandleAndLocalPath,
    IncrementalRemoteKeyedStateHandle,
    InMemoryChangelogStateHandle,
    KeyedStateHandle,
    KeyGroupsSavepointStateHandle,
    KeyGroupsStateHandle,
    OperatorStateHandle,
    OperatorStreamStateHandle,
    RelativeFileStateHandle,
    SegmentFileStateHandle,
    StateMetaInfo,
    StreamStateHandle,
)
from spark_ckpt.metadata.keyrange import KeyGroupRange, KeyGroupRangeOffsets


def write_keyed_state_handle(
    out: DataOutput, handle: KeyedStateHandle | None, field: str, index: int | None = None
) -> None:
    """Write a handle of keyed state, or the code for none. With an index, it is an element of `field`."""
    if handle is None:
        out.i8(NULL_HANDLE, field)
        return
    out.enter(field, index)
    _write(out, _KEYED_STATE_HANDLES, handle)
    out.leave()


def write_operator_state_handle(out: DataOutput, handle: OperatorStateHandle, field: str) -> None:
    """Write a handle of operator state."""
    out.enter(field)
    _write(out, _OPERATOR_STATE_HANDLES, handle)
    out.leave()


def write_stream(out: DataOutput, handle: StreamStateHandle | None, field: str) -> None:
    """Write a handle of a stream, or the code for none."""
    if handle is None:
        out.i8(NULL_HANDLE, field)
        return
    out.enter(field)
    _write(out, _STREAM_STATE_HANDLES, handle)
    out.leave()


_WriteFields = Callable[[DataOutput, Any], None]


def _write(out: DataOutput, table: Mapping[type, _WriteFields], handle: object) -> None:
    code = code_of(handle)
    if code is None or (write_fields := table.get(type(handle))) is None:
        raise out.error("code", f"a {type(handle).__name__} is not allowed here")
    out.i8(code, "code")
    write_fields(out, handle)


# ---- streams of bytes ------------------------------------------------------------------------------------------------


def _byte_stream(out: DataOutput, handle: ByteStreamStateHandle) -> None:
    out.utf(handle.handle_name, "handle_name")
    out.byte_array(handle.data, "data")


def _file(out: DataOutput, handle: FileStateHandle) -> None:
    out.i64(handle.state_size, "state_size")
    out.utf(handle.file_path, "file_path")


def _relative_file(out: DataOutput, handle: RelativeFileStateHandle) -> None:
    out.utf(handle.relative_path, "relative_path")
    out.i64(handle.state_size, "state_size")


def _segment_file(out: DataOutput, handle: SegmentFileStateHandle) -> None:
    out.i64(handle.start_pos, "start_pos")
    out.i64(handle.state_size, "state_size")
    out.i32(handle.scope.value, "scope")
    out.utf(handle.file_path, "file_path")
    out.utf(handle.logical_file_id, "logical_file_id")


def _empty_segment_file(out: DataOutput, handle: EmptySegmentFileStateHandle) -> None:
    """Nothing: the handle is only its code."""


def _key_groups_as_stream(out: DataOutput, handle: KeyGroupsStateHandle) -> None:
    if handle.state_handle_id is not None:
        raise out.error("state_handle_id", "a key-groups handle written as a stream handle has no id in the file")
    _key_groups(out, handle)


# ---- keyed state -----------------------------------------------------------------------------------------------------


def _key_group_range(out: DataOutput, key_group_range: KeyGroupRange) -> None:
    out.i32(key_group_range.start, "key_group_range")
    out.i32(key_group_range.number_of_key_groups, "key_group_range")


def _group_range_offsets(out: DataOutput, offsets: KeyGroupRangeOffsets) -> None:
    _key_group_range(out, offsets.key_group_range)
    out.i64_array(offsets.offsets)


def _key_groups(out: DataOutput, handle: KeyGroupsStateHandle) -> None:
    _group_range_offsets(out, handle.group_range_offsets)
    write_stream(out, handle.delegate_state_handle, "delegate_state_handle")
    if handle.state_handle_id is not None:
        out.utf(handle.state_handle_id, "state_handle_id")


def _key_groups_savepoint(out: DataOutput, handle: KeyGroupsSavepointStateHandle) -> None:
    _group_range_offsets(out, handle.group_range_offsets)
    write_stream(out, handle.delegate_state_handle, "delegate_state_handle")


def _incremental(out: DataOutput, handle: IncrementalRemoteKeyedStateHandle) -> None:
    out.i64(handle.checkpoint_id, "checkpoint_id")
    out.utf(handle.backend_identifier, "backend_identifier")
    _key_group_range(out, handle.key_group_range)
    if handle.checkpointed_size is not None:
        out.i64(handle.checkpointed_size, "checkpointed_size")
    write_stream(out, handle.meta_data_state_handle, "meta_data_state_handle")
    _files(out, handle.shared_state, "shared_state")
    _files(out, handle.private_state, "private_state")
    if handle.state_handle_id is not None:
        out.utf(handle.state_handle_id, "state_handle_id")


def _files(out: DataOutput, files: tuple[HandleAndLocalPath, ...], field: str) -> None:
    out.i32(len(files), field)
    for index, file in enumerate(files):
        out.enter(field, index)
        out.utf(file.local_path, "local_path")
        write_stream(out, file.handle, "handle")
        out.leave()


def _changelog(out: DataOutput, handle: ChangelogStateBackendHandle) -> None:
    _key_group_range(out, handle.key_group_range)
    out.i64(handle.checkpointed_size, "checkpointed_size")
    out.i32(len(handle.materialized_state_handles), "materialized_state_handles")
    for index, part in enumerate(handle.materialized_state_handles):
        write_keyed_state_handle(out, part, "materialized_state_handles", index)
    out.i32(len(handle.non_materialized_state_handles), "non_materialized_state_handles")
    for index, changes in enumerate(handle.non_materialized_state_handles):
        out.enter("non_materialized_state_handles", index)
        _write(out, _CHANGELOG_STATE_HANDLES, changes)
        out.leave()
    out.i64(handle.materialization_id, "materialization_id")
    if handle.checkpoint_id is not None:
        out.i64(handle.checkpoint_id, "checkpoint_id")
    out.utf(handle.state_handle_id, "state_handle_id")


def _in_memory_changes(out: DataOutput, handle: InMemoryChangelogStateHandle) -> None:
    _key_group_range(out, handle.key_group_range)
    out.i64(handle.from_, "from_")
    out.i64(handle.to, "to")
    out.i32(len(handle.changes), "changes")
    for change in handle.changes:
        out.i32(change.key_group, "changes")
        out.byte_array(change.change, "changes")
    out.utf(handle.state_handle_id, "state_handle_id")


def _changes_in_files(out: DataOutput, handle: ChangelogStateHandleStreamImpl) -> None:
    _key_group_range(out, handle.key_group_range)
    out.i32(len(handle.handles_and_offsets), "handles_and_offsets")
    for index, part in enumerate(handle.handles_and_offsets):
        out.enter("handles_and_offsets", index)
        out.i64(part.offset, "offset")
        write_stream(out, part.handle, "handle")
        out.leave()
    out.i64(handle.state_size, "state_size")
    out.i64(handle.checkpointed_size, "checkpointed_size")
    out.utf(handle.state_handle_id, "state_handle_id")
    if handle.storage_identifier is not None:
        out.utf(handle.storage_identifier, "storage_identifier")


# ---- operator state --------------------------------------------------------------------------------------------------


def _state_name_to_partition_offsets(out: DataOutput, states: Mapping[str, StateMetaInfo]) -> None:
    out.i32(len(states), "state_name_to_partition_offsets")
    for index, (name, info) in enumerate(states.items()):
        out.enter("state_name_to_partition_offsets", index)
        out.utf(name, "name")
        out.i8(info.distribution_mode.value, "distribution_mode")
        out.i64_sequence(info.offsets, "offsets")
        out.leave()


def _operator_stream(out: DataOutput, handle: OperatorStreamStateHandle) -> None:
    _state_name_to_partition_offsets(out, handle.state_name_to_partition_offsets)
    write_stream(out, handle.delegate_state_handle, "delegate_state_handle")


def _file_merging_operator_stream(out: DataOutput, handle: FileMergingOperatorStreamStateHandle) -> None:
    _state_name_to_partition_offsets(out, handle.state_name_to_partition_offsets)
    out.utf(handle.task_owned_dir, "task_owned_dir")
    out.utf(handle.shared_dir, "shared_dir")
    out.i8(int(handle.is_empty), "is_empty")
    write_stream(out, handle.delegate_state_handle, "delegate_state_handle")


_STREAM_STATE_HANDLES: dict[type, _WriteFields] = {
    ByteStreamStateHandle: _byte_stream,
    FileStateHandle: _file,
    RelativeFileStateHandle: _relative_file,
    SegmentFileStateHandle: _segment_file,
    EmptySegmentFileStateHandle: _empty_segment_file,
    KeyGroupsStateHandle: _key_groups_as_stream,
}

_CHANGELOG_STATE_HANDLES: dict[type, _WriteFields] = {
    InMemoryChangelogStateHandle: _in_memory_changes,
    ChangelogStateHandleStreamImpl: _changes_in_files,
}

_KEYED_STATE_HANDLES: dict[type, _WriteFields] = {
    KeyGroupsStateHandle: _key_groups,
    KeyGroupsSavepointStateHandle: _key_groups_savepoint,
    IncrementalRemoteKeyedStateHandle: _incremental,
    ChangelogStateBackendHandle: _changelog,
    **_CHANGELOG_STATE_HANDLES,
}

_OPERATOR_STATE_HANDLES: dict[type, _WriteFields] = {
    OperatorStreamStateHandle: _operator_stream,
    FileMergingOperatorStreamStateHandle: _file_merging_operator_stream,
}
