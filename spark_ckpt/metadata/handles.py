"""State handles: description and location of a piece of state in a checkpoint.

Names and rules are those of `org.apache.flink.runtime.state` and its subpackages. Handles are values: two are equal if
all their fields are equal. Flink stores some classes under two codes. A None in the optional field selects the older
code, so that a decoded file encodes to the same bytes.

Every handle has a `state_size`: bytes that it refers to (`StateObject.getStateSize`); -1 if a file's size is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from spark_ckpt.metadata.errors import MetadataValueError
from spark_ckpt.metadata.keyrange import KeyGroupRange, KeyGroupRangeOffsets
from spark_ckpt.metadata.paths import refusal, relative_refusal

# ---- streams of bytes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByteStreamStateHandle:
    """State inside the metadata file itself (`memory.ByteStreamStateHandle`). The name is informative only."""

    handle_name: str
    data: bytes

    @property
    def state_size(self) -> int:
        """Number of bytes of the state."""
        return len(self.data)


@dataclass(frozen=True, slots=True)
class FileStateHandle:
    """State in a file of its own (`filesystem.FileStateHandle`).

    Raises:
        MetadataValueError: Flink rejects the path, or the size is below -1 (-1 means unknown).
    """

    file_path: str
    state_size: int

    def __post_init__(self) -> None:
        _check_path("file_path", refusal(self.file_path))
        _check_size(self.state_size)


@dataclass(frozen=True, slots=True)
class RelativeFileStateHandle:
    """State in a file, by its path relative to the directory of `_metadata` (`filesystem.RelativeFileStateHandle`).

    Raises:
        MetadataValueError: Flink rejects the path, or the size is below -1 (-1 means unknown).
    """

    relative_path: str
    state_size: int

    def __post_init__(self) -> None:
        _check_path("relative_path", relative_refusal(self.relative_path))
        _check_size(self.state_size)


class CheckpointedStateScope(Enum):
    """Scope of a file: one checkpoint or several (`CheckpointedStateScope`). The value is Flink's ordinal."""

    EXCLUSIVE = 0
    SHARED = 1


@dataclass(frozen=True, slots=True)
class SegmentFileStateHandle:
    """State in a segment of a shared file (`filemerging.SegmentFileStateHandle`).

    Raises:
        MetadataValueError: Flink rejects the path.
    """

    file_path: str
    start_pos: int
    state_size: int
    scope: CheckpointedStateScope
    logical_file_id: str

    def __post_init__(self) -> None:
        _check_path("file_path", refusal(self.file_path))


@dataclass(frozen=True, slots=True)
class EmptySegmentFileStateHandle:
    """Placeholder for no state in file merging (`filemerging.EmptySegmentFileStateHandle`)."""

    @property
    def state_size(self) -> int:
        """Always 0."""
        return 0


# ---- keyed state -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyGroupsStateHandle:
    """Keyed state in one stream, with the offset of each key group (`KeyGroupsStateHandle`).

    Args:
        group_range_offsets: key groups, with the start of each in the stream.
        delegate_state_handle: handle of the stream.
        state_handle_id: identity of the handle, for code 12; None for code 3 (Flink creates one at every load).
    """

    group_range_offsets: KeyGroupRangeOffsets
    delegate_state_handle: StreamStateHandle
    state_handle_id: str | None = None

    @property
    def key_group_range(self) -> KeyGroupRange:
        """Key groups of the handle."""
        return self.group_range_offsets.key_group_range

    @property
    def state_size(self) -> int:
        """Number of bytes of the stream, which may contain other key groups, too."""
        return self.delegate_state_handle.state_size


@dataclass(frozen=True, slots=True)
class KeyGroupsSavepointStateHandle:
    """Keyed state in the canonical format of savepoints, code 7 (`KeyGroupsSavepointStateHandle`)."""

    group_range_offsets: KeyGroupRangeOffsets
    delegate_state_handle: StreamStateHandle

    @property
    def key_group_range(self) -> KeyGroupRange:
        """Key groups of the handle."""
        return self.group_range_offsets.key_group_range

    @property
    def state_size(self) -> int:
        """Number of bytes of the stream."""
        return self.delegate_state_handle.state_size


@dataclass(frozen=True, slots=True)
class HandleAndLocalPath:
    """File of an incremental snapshot, under its local name (`IncrementalKeyedStateHandle.HandleAndLocalPath`)."""

    local_path: str
    handle: StreamStateHandle


@dataclass(frozen=True, slots=True)
class IncrementalRemoteKeyedStateHandle:
    """Incremental snapshot: files of this checkpoint and of earlier ones (`IncrementalRemoteKeyedStateHandle`).

    Args:
        backend_identifier: text of a UUID; Flink derives a name-based UUID from any other text.
        key_group_range: key groups of the snapshot.
        checkpoint_id: checkpoint that created the snapshot.
        meta_data_state_handle: stream with the descriptions of the states; Flink loads None, but cannot restore it.
        shared_state: files that other checkpoints may use, too.
        private_state: files of this checkpoint only.
        checkpointed_size: bytes that this checkpoint added; None exactly if `state_handle_id` is.
        state_handle_id: identity of the handle, for code 11; None for code 5.

    Raises:
        MetadataValueError: only one of the last two is None.
    """

    backend_identifier: str
    key_group_range: KeyGroupRange
    checkpoint_id: int
    meta_data_state_handle: StreamStateHandle | None
    shared_state: tuple[HandleAndLocalPath, ...] = ()
    private_state: tuple[HandleAndLocalPath, ...] = ()
    checkpointed_size: int | None = None
    state_handle_id: str | None = None

    def __post_init__(self) -> None:
        if (self.checkpointed_size is None) != (self.state_handle_id is None):
            raise MetadataValueError("checkpointed_size", "requires a state handle id, and vice versa")

    @property
    def state_size(self) -> int:
        """Number of bytes of all files, including those of earlier checkpoints."""
        meta = self.meta_data_state_handle.state_size if self.meta_data_state_handle else 0
        return meta + sum(file.handle.state_size for file in (*self.shared_state, *self.private_state))


@dataclass(frozen=True, slots=True)
class StateChange:
    """One change in a changelog (`changelog.StateChange`). Key group -1 is for descriptions of states.

    Raises:
        MetadataValueError: the key group is below -1.
    """

    key_group: int
    change: bytes

    def __post_init__(self) -> None:
        if self.key_group < -1:
            raise MetadataValueError("key_group", f"{self.key_group} is below -1")


@dataclass(frozen=True, slots=True)
class InMemoryChangelogStateHandle:
    """Changes inside the metadata file, with the sequence numbers from `from_` (inclusive) to `to` (exclusive).

    Flink: `changelog.inmemory.InMemoryChangelogStateHandle`, code 9.

    Raises:
        MetadataValueError: a sequence number is negative.
    """

    changes: tuple[StateChange, ...]
    from_: int
    to: int
    key_group_range: KeyGroupRange
    state_handle_id: str

    def __post_init__(self) -> None:
        for name, number in (("from_", self.from_), ("to", self.to)):
            if number < 0:
                raise MetadataValueError(name, f"the sequence number {number} is negative")

    @property
    def state_size(self) -> int:
        """Number of bytes of all changes."""
        return sum(len(change.change) for change in self.changes)


@dataclass(frozen=True, slots=True)
class HandleAndOffset:
    """Changelog file, and the offset of its changes. Neither this offset nor the file's size counts the first byte.

    Flink loads None as the file, but cannot restore it.
    """

    handle: StreamStateHandle | None
    offset: int


@dataclass(frozen=True, slots=True)
class ChangelogStateHandleStreamImpl:
    """Changes in files (`changelog.ChangelogStateHandleStreamImpl`).

    Args:
        handles_and_offsets: files in the order of the changes.
        key_group_range: key groups of the changes.
        state_size: bytes of the changes.
        checkpointed_size: bytes that this checkpoint added.
        state_handle_id: identity of the handle.
        storage_identifier: name of the changelog storage, "filesystem", for code 13; None for code 10.
    """

    handles_and_offsets: tuple[HandleAndOffset, ...]
    key_group_range: KeyGroupRange
    state_size: int
    checkpointed_size: int
    state_handle_id: str
    storage_identifier: str | None = None


@dataclass(frozen=True, slots=True)
class ChangelogStateBackendHandle:
    """Keyed state as a materialised part and later changes (`changelog.ChangelogStateBackendHandleImpl`).

    Args:
        materialized_state_handles: materialised state, as handles of any kind of keyed state. Flink skips None when it
            loads a file.
        non_materialized_state_handles: changes since the materialisation; Flink accepts only changelog handles.
        key_group_range: key groups of the state.
        checkpointed_size: bytes that this checkpoint added.
        materialization_id: number of the materialisation.
        state_handle_id: identity of the handle.
        checkpoint_id: checkpoint that created the handle, for code 14; None for code 8, which Flink reads with the
            materialisation id in its place.

    Raises:
        MetadataValueError: the range is empty, which Flink rejects for this class of handle only.
    """

    materialized_state_handles: tuple[KeyedStateHandle | None, ...]
    non_materialized_state_handles: tuple[ChangelogStateHandle, ...]
    key_group_range: KeyGroupRange
    checkpointed_size: int
    materialization_id: int
    state_handle_id: str
    checkpoint_id: int | None = None

    def __post_init__(self) -> None:
        if not self.key_group_range.number_of_key_groups:
            raise MetadataValueError("key_group_range", "a changelog handle has at least one key group")

    @property
    def state_size(self) -> int:
        """Number of bytes of all parts."""
        parts = (*self.materialized_state_handles, *self.non_materialized_state_handles)
        return sum(part.state_size for part in parts if part is not None)


# ---- operator state --------------------------------------------------------------------------------------------------


class DistributionMode(Enum):
    """Distribution of a state's elements to subtasks (`OperatorStateHandle.Mode`). The value is Flink's ordinal."""

    SPLIT_DISTRIBUTE = 0
    UNION = 1
    BROADCAST = 2


@dataclass(frozen=True, slots=True)
class StateMetaInfo:
    """Start offsets of the elements of one operator state (`OperatorStateHandle.StateMetaInfo`)."""

    offsets: tuple[int, ...]
    distribution_mode: DistributionMode


@dataclass(frozen=True, slots=True)
class OperatorStreamStateHandle:
    """Operator state in one stream, code 4 (`OperatorStreamStateHandle`)."""

    state_name_to_partition_offsets: Mapping[str, StateMetaInfo]
    delegate_state_handle: StreamStateHandle

    @property
    def state_size(self) -> int:
        """Number of bytes of the stream."""
        return self.delegate_state_handle.state_size


@dataclass(frozen=True, slots=True)
class FileMergingOperatorStreamStateHandle:
    """Operator state in a segment of a merged file, code 17 (`filemerging.FileMergingOperatorStreamStateHandle`).

    Args:
        state_name_to_partition_offsets: states by name, with the offsets of their elements.
        task_owned_dir: directory of task-owned files.
        shared_dir: directory of shared merged files.
        delegate_state_handle: handle of the segment.
        is_empty: True for Flink's empty variant (`EmptyFileMergingOperatorStreamStateHandle`).

    Raises:
        MetadataValueError: Flink rejects the path of a directory.
    """

    state_name_to_partition_offsets: Mapping[str, StateMetaInfo]
    task_owned_dir: str
    shared_dir: str
    delegate_state_handle: SegmentFileStateHandle | EmptySegmentFileStateHandle
    is_empty: bool = False

    def __post_init__(self) -> None:
        _check_path("task_owned_dir", refusal(self.task_owned_dir))
        _check_path("shared_dir", refusal(self.shared_dir))

    @property
    def state_size(self) -> int:
        """Number of bytes of the segment."""
        return self.delegate_state_handle.state_size


StreamStateHandle: TypeAlias = (
    ByteStreamStateHandle
    | FileStateHandle
    | RelativeFileStateHandle
    | SegmentFileStateHandle
    | EmptySegmentFileStateHandle
    | KeyGroupsStateHandle
)
"""Handles of one stream of bytes (`StreamStateHandle`)."""

ChangelogStateHandle: TypeAlias = InMemoryChangelogStateHandle | ChangelogStateHandleStreamImpl
"""Handles of changes (`changelog.ChangelogStateHandle`)."""

KeyedStateHandle: TypeAlias = (
    KeyGroupsStateHandle
    | KeyGroupsSavepointStateHandle
    | IncrementalRemoteKeyedStateHandle
    | ChangelogStateBackendHandle
    | InMemoryChangelogStateHandle
    | ChangelogStateHandleStreamImpl
)
"""Handles of the keyed state of one subtask (`KeyedStateHandle`)."""

OperatorStateHandle: TypeAlias = OperatorStreamStateHandle | FileMergingOperatorStreamStateHandle
"""Handles of the operator state of one subtask (`OperatorStateHandle`)."""


def _check_path(field: str, reason: str | None) -> None:
    if reason is not None:
        raise MetadataValueError(field, reason)


def _check_size(size: int) -> None:
    if size < -1:
        raise MetadataValueError("state_size", f"{size} is below -1")
