"""Decoder of state handles: `MetadataV2V3SerializerBase.deserialize*Handle`, one function per layout.

A handle is a one-byte type code, followed by its fields. All handles share one numbering of codes, but each position
accepts only some kinds, listed in the tables at the end. Codes do not depend on the version of the file.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.handles import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    ChangelogStateHandle,
    ChangelogStateHandleStreamImpl,
    CheckpointedStateScope,
    DistributionMode,
    EmptySegmentFileStateHandle,
    FileMergingOperatorStreamStateHandle,
    FileStateHandle,
    HandleAndLocalPath,
    HandleAndOffset,
    IncrementalRemoteKeyedStateHandle,
    InMemoryChangelogStateHandle,
    KeyedStateHandle,
    KeyGroupsSavepointStateHandle,
    KeyGroupsStateHandle,
    OperatorStateHandle,
    OperatorStreamStateHandle,
    RelativeFileStateHandle,
    SegmentFileStateHandle,
    StateChange,
    StateMetaInfo,
    StreamStateHandle,
)
from spark_ckpt.metadata.keyrange import KeyGroupRange, KeyGroupRangeOffsets

NULL_HANDLE = 0
"""Code for no handle, in every position."""

# Minimum bytes of a list element, to check a count before its elements are read.
_MIN_HANDLE = 1
_MIN_FILE = 2 + 1
_MIN_CHANGE = 4 + 4
_MIN_HANDLE_AND_OFFSET = 8 + 1
_MIN_STATE = 2 + 1 + 4


def read_keyed_state_handle(data: DataInput, field: str) -> KeyedStateHandle | None:
    """A handle of keyed state, or None (`deserializeKeyedStateHandle`)."""
    at = data.position
    code = data.i8(field)
    if code == NULL_HANDLE:
        return None
    if (read := _KEYED_STATE_HANDLES.get(code)) is None:
        data.fail(field, f"unknown keyed state handle code {code}", at)
    return read(data)


def read_operator_state_handle(data: DataInput, field: str) -> OperatorStateHandle:
    """A handle of operator state (`deserializeOperatorStateHandle`). The caller has read the flag that announces it."""
    at = data.position
    code = data.i8(field)
    if (read := _OPERATOR_STATE_HANDLES.get(code)) is None:
        data.fail(field, f"unknown operator state handle code {code}", at)
    return read(data)


def read_optional_stream(data: DataInput, field: str) -> StreamStateHandle | None:
    """A handle of a stream, or None (`deserializeStreamStateHandle`)."""
    at = data.position
    code = data.u8(field)
    if code == NULL_HANDLE:
        return None
    if (read := _STREAM_STATE_HANDLES.get(code)) is None:
        data.fail(field, f"unknown stream state handle code {code}", at)
    data.enter(field)
    handle = read(data)
    data.leave()
    return handle


def read_stream(data: DataInput, field: str) -> StreamStateHandle:
    """A handle of a stream. None is an error."""
    at = data.position
    handle = read_optional_stream(data, field)
    if handle is None:
        data.fail(field, "a stream state handle is missing", at)
    return handle


# ---- streams of bytes ------------------------------------------------------------------------------------------------


def _byte_stream(data: DataInput) -> ByteStreamStateHandle:
    return ByteStreamStateHandle(data.utf("handle_name"), data.byte_array("data"))


def _file(data: DataInput) -> FileStateHandle:
    # The size comes first here, and last in the relative handle.
    state_size = data.i64("state_size")
    return FileStateHandle(data.utf("file_path"), state_size)


def _relative_file(data: DataInput) -> RelativeFileStateHandle:
    return RelativeFileStateHandle(data.utf("relative_path"), data.i64("state_size"))


def _segment_file(data: DataInput) -> SegmentFileStateHandle:
    start_pos = data.i64("start_pos")
    state_size = data.i64("state_size")
    at = data.position
    ordinal = data.i32("scope")
    if ordinal not in _SCOPES:
        data.fail("scope", f"unknown scope {ordinal}", at)
    return SegmentFileStateHandle(
        data.utf("file_path"), start_pos, state_size, _SCOPES[ordinal], data.utf("logical_file_id")
    )


def _empty_segment_file(data: DataInput) -> EmptySegmentFileStateHandle:
    return _EMPTY_SEGMENT_FILE


# ---- keyed state -----------------------------------------------------------------------------------------------------


def _key_group_range(data: DataInput) -> KeyGroupRange:
    start = data.i32("key_group_range")
    return _range(start, data.i32("key_group_range"))


def _group_range_offsets(data: DataInput) -> KeyGroupRangeOffsets:
    start = data.i32("key_group_range")
    number = data.count("key_group_range", 8)
    return KeyGroupRangeOffsets(_range(start, number), data.i64_array(number, "offsets") if number else _NO_OFFSETS)


def _range(start: int, number: int) -> KeyGroupRange:
    """Key-group range as in `KeyGroupRange.of`: empty if the last key group, in 32 bits, is less than the first."""
    last = (start + number - 1 + 2**31) % 2**32 - 2**31
    if last >= start or (number == 0 and start >= 0):
        return KeyGroupRange(start, last)
    return _NO_KEY_GROUPS


def _key_groups(data: DataInput) -> KeyGroupsStateHandle:
    return KeyGroupsStateHandle(_group_range_offsets(data), read_stream(data, "delegate_state_handle"))


def _key_groups_with_id(data: DataInput) -> KeyGroupsStateHandle:
    return KeyGroupsStateHandle(
        _group_range_offsets(data), read_stream(data, "delegate_state_handle"), data.utf("state_handle_id")
    )


def _key_groups_savepoint(data: DataInput) -> KeyGroupsSavepointStateHandle:
    return KeyGroupsSavepointStateHandle(_group_range_offsets(data), read_stream(data, "delegate_state_handle"))


def _incremental(data: DataInput, *, with_id: bool = False) -> IncrementalRemoteKeyedStateHandle:
    checkpoint_id = data.i64("checkpoint_id")
    backend_identifier = data.utf("backend_identifier")
    key_group_range = _key_group_range(data)
    checkpointed_size = data.i64("checkpointed_size") if with_id else None
    return IncrementalRemoteKeyedStateHandle(
        backend_identifier,
        key_group_range,
        checkpoint_id,
        read_optional_stream(data, "meta_data_state_handle"),
        _files(data, "shared_state"),
        _files(data, "private_state"),
        checkpointed_size,
        data.utf("state_handle_id") if with_id else None,
    )


def _incremental_with_id(data: DataInput) -> IncrementalRemoteKeyedStateHandle:
    return _incremental(data, with_id=True)


def _files(data: DataInput, field: str) -> tuple[HandleAndLocalPath, ...]:
    return tuple(
        HandleAndLocalPath(data.utf("local_path"), read_stream(data, "handle")) for _ in data.each(field, _MIN_FILE)
    )


def _changelog(data: DataInput, *, with_checkpoint_id: bool = False) -> ChangelogStateBackendHandle:
    key_group_range = _key_group_range(data)
    checkpointed_size = data.i64("checkpointed_size")
    materialized = tuple(
        # Flink logs a warning for a missing handle, and continues.
        read_keyed_state_handle(data, "code")
        for _ in data.each("materialized_state_handles", _MIN_HANDLE)
    )
    changes = tuple(_changes(data) for _ in data.each("non_materialized_state_handles", _MIN_HANDLE))
    materialization_id = data.i64("materialization_id")
    checkpoint_id = data.i64("checkpoint_id") if with_checkpoint_id else None
    return ChangelogStateBackendHandle(
        materialized,
        changes,
        key_group_range,
        checkpointed_size,
        materialization_id,
        data.utf("state_handle_id"),
        checkpoint_id,
    )


def _changelog_with_checkpoint_id(data: DataInput) -> ChangelogStateBackendHandle:
    return _changelog(data, with_checkpoint_id=True)


def _changes(data: DataInput) -> ChangelogStateHandle:
    at = data.position
    handle = read_keyed_state_handle(data, "code")
    if not isinstance(handle, (InMemoryChangelogStateHandle, ChangelogStateHandleStreamImpl)):
        data.fail("code", f"a {type(handle).__name__} instead of a changelog handle", at)
    return handle


def _in_memory_changes(data: DataInput) -> InMemoryChangelogStateHandle:
    key_group_range = _key_group_range(data)
    from_ = data.i64("from_")
    to = data.i64("to")
    changes = tuple(
        StateChange(data.i32("key_group"), data.byte_array("change")) for _ in data.each("changes", _MIN_CHANGE)
    )
    return InMemoryChangelogStateHandle(changes, from_, to, key_group_range, data.utf("state_handle_id"))


def _changes_in_files(data: DataInput, *, with_storage: bool = False) -> ChangelogStateHandleStreamImpl:
    key_group_range = _key_group_range(data)
    handles = tuple(_handle_and_offset(data) for _ in data.each("handles_and_offsets", _MIN_HANDLE_AND_OFFSET))
    return ChangelogStateHandleStreamImpl(
        handles,
        key_group_range,
        data.i64("state_size"),
        data.i64("checkpointed_size"),
        data.utf("state_handle_id"),
        data.utf("storage_identifier") if with_storage else None,
    )


def _changes_in_files_with_storage(data: DataInput) -> ChangelogStateHandleStreamImpl:
    return _changes_in_files(data, with_storage=True)


def _handle_and_offset(data: DataInput) -> HandleAndOffset:
    offset = data.i64("offset")
    return HandleAndOffset(read_optional_stream(data, "handle"), offset)


# ---- operator state --------------------------------------------------------------------------------------------------


def _state_name_to_partition_offsets(data: DataInput) -> dict[str, StateMetaInfo]:
    # The last of several states with the same name wins.
    return dict(_state_meta_info(data) for _ in data.each("state_name_to_partition_offsets", _MIN_STATE))


def _state_meta_info(data: DataInput) -> tuple[str, StateMetaInfo]:
    name = data.utf("name")
    at = data.position
    ordinal = data.i8("distribution_mode")
    if ordinal not in _MODES:
        data.fail("distribution_mode", f"unknown distribution mode {ordinal}", at)
    return name, StateMetaInfo(data.i64_tuple("offsets"), _MODES[ordinal])


def _operator_stream(data: DataInput) -> OperatorStreamStateHandle:
    return OperatorStreamStateHandle(_state_name_to_partition_offsets(data), read_stream(data, "delegate_state_handle"))


def _file_merging_operator_stream(data: DataInput) -> FileMergingOperatorStreamStateHandle:
    states = _state_name_to_partition_offsets(data)
    task_owned_dir = data.utf("task_owned_dir")
    shared_dir = data.utf("shared_dir")
    is_empty = data.boolean("is_empty")
    at = data.position
    delegate = read_stream(data, "delegate_state_handle")
    if not isinstance(delegate, (SegmentFileStateHandle, EmptySegmentFileStateHandle)):
        data.fail("delegate_state_handle", f"a {type(delegate).__name__} instead of a segment of a merged file", at)
    return FileMergingOperatorStreamStateHandle(states, task_owned_dir, shared_dir, delegate, is_empty)


# Shared instances: a handle without fields, the empty range, and no offsets.
_EMPTY_SEGMENT_FILE = EmptySegmentFileStateHandle()
_NO_KEY_GROUPS = KeyGroupRange(0, -1)
_NO_OFFSETS = np.empty(0, dtype=np.int64)
_NO_OFFSETS.flags.writeable = False

_SCOPES = {scope.value: scope for scope in CheckpointedStateScope}
_MODES = {mode.value: mode for mode in DistributionMode}

_STREAM_STATE_HANDLES: dict[int, Callable[[DataInput], StreamStateHandle]] = {
    1: _byte_stream,
    2: _file,
    3: _key_groups,
    6: _relative_file,
    15: _segment_file,
    16: _empty_segment_file,
}

_KEYED_STATE_HANDLES: dict[int, Callable[[DataInput], KeyedStateHandle]] = {
    3: _key_groups,
    5: _incremental,
    7: _key_groups_savepoint,
    8: _changelog,
    9: _in_memory_changes,
    10: _changes_in_files,
    11: _incremental_with_id,
    12: _key_groups_with_id,
    13: _changes_in_files_with_storage,
    14: _changelog_with_checkpoint_id,
}

_OPERATOR_STATE_HANDLES: dict[int, Callable[[DataInput], OperatorStateHandle]] = {
    4: _operator_stream,
    17: _file_merging_operator_stream,
}
