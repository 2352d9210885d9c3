"""State handles: what a checkpoint knows of a piece of state, and where its bytes are.

Names and rules are those of `org.apache.flink.runtime.state` and its subpackages. Handles are values: two are equal if
everything in them is. An optional field that is None selects the older of the two codes under which Flink stores the
same class, so that a file which was read is written again byte by byte.

Every handle has `state_size`: the bytes it refers to (`StateObject.getStateSize`), -1 where the size of a file is
unknown.
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
    """State that the metadata file itself holds (`memory.ByteStreamStateHandle`). The name is informative only."""

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
        MetadataValueError: Flink takes the path for none, or the size is below -1 (-1 means unknown).
    """

    file_path: str
    state_size: int

    def __post_init__(self) -> None:
        _check_path("file_path", refusal(self.file_path))
        _check_size(self.state_size)


@dataclass(frozen=True, slots=True)
class RelativeFileStateHandle:
    """State in a file whose path counts from the directory of `_metadata` (`filesystem.RelativeFileStateHandle`).

    Raises:
        MetadataValueError: Flink takes the path for none, or the size is below -1 (-1 means unknown).
    """

    relative_path: str
    state_size: int

    def __post_init__(self) -> None:
        _check_path("relative_path", relative_refusal(self.relative_path))
        _check_size(self.state_size)


class CheckpointedStateScope(Enum):
    """Scope of a file: one checkpoint or several use it (`CheckpointedStateScope`); the value is Flink's ordinal."""

    EXCLUSIVE = 0
    SHARED = 1


@dataclass(frozen=True, slots=True)
class SegmentFileStateHandle:
    """State in a part of a file that others share (`filemerging.SegmentFileStateHandle`).

    Raises:
        MetadataValueError: Flink takes the path for none.
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
    """Placeholder of file merging for no state (`filemerging.EmptySegmentFileStateHandle`)."""

    @property
    def state_size(self) -> int:
        """Always 0."""
        return 0


# ---- keyed state -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyGroupsStateHandle:
    """Keyed state in one stream, with the offset of each key group (`KeyGroupsStateHandle`).

    Args:
        group_range_offsets: the key groups and where each starts in the stream.
        delegate_state_handle: the stream.
        state_handle_id: identity of the handle; None writes code 3 (Flink then invents one at every load), else 12.
    """

    group_range_offsets: KeyGroupRangeOffsets
    delegate_state_handle: StreamStateHandle
    state_handle_id: str | None = None

    @property
    def key_group_range(self) -> KeyGroupRange:
        """The key groups of the handle."""
        return self.group_range_offsets.key_group_range

    @property
    def state_size(self) -> int:
        """Number of bytes of the stream, which may hold more than these key groups."""
        return self.delegate_state_handle.state_size


@dataclass(frozen=True, slots=True)
class KeyGroupsSavepointStateHandle:
    """Keyed state in the canonical format of savepoints, code 7 (`KeyGroupsSavepointStateHandle`)."""

    group_range_offsets: KeyGroupRangeOffsets
    delegate_state_handle: StreamStateHandle

    @property
    def key_group_range(self) -> KeyGroupRange:
        """The key groups of the handle."""
        return self.group_range_offsets.key_group_range

    @property
    def state_size(self) -> int:
        """Number of bytes of the stream."""
        return self.delegate_state_handle.state_size


@dataclass(frozen=True, slots=True)
class HandleAndLocalPath:
    """A file of an incremental snapshot, under its local name (`IncrementalKeyedStateHandle.HandleAndLocalPath`)."""

    local_path: str
    handle: StreamStateHandle


@dataclass(frozen=True, slots=True)
class IncrementalRemoteKeyedStateHandle:
    """An incremental snapshot: files of this checkpoint and of earlier ones (`IncrementalRemoteKeyedStateHandle`).

    Args:
        backend_identifier: text of a UUID; Flink turns other text into a name-based one.
        key_group_range: the key groups.
        checkpoint_id: the checkpoint that made it.
        meta_data_state_handle: stream with the description of the states; Flink loads None but cannot restore it.
        shared_state: files that other checkpoints may use too.
        private_state: files of this checkpoint alone.
        checkpointed_size: bytes this checkpoint added; None together with the next field.
        state_handle_id: identity of the handle; None writes code 5, else 11.

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
            raise MetadataValueError("checkpointed_size", "needs a state handle id, and the other way round")

    @property
    def state_size(self) -> int:
        """Number of bytes of all files together, of earlier checkpoints too."""
        meta = self.meta_data_state_handle.state_size if self.meta_data_state_handle else 0
        return meta + sum(file.handle.state_size for file in (*self.shared_state, *self.private_state))


@dataclass(frozen=True, slots=True)
class StateChange:
    """One change of a changelog (`changelog.StateChange`); key group -1 holds descriptions of states.

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
    """Changes that the metadata file holds, of the sequence numbers `from_` up to, not including, `to`.

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
    """A changelog file and where in it the changes start; neither counts the first byte of the file.

    Flink loads one without a file, but cannot restore it.
    """

    handle: StreamStateHandle | None
    offset: int


@dataclass(frozen=True, slots=True)
class ChangelogStateHandleStreamImpl:
    """Changes in files (`changelog.ChangelogStateHandleStreamImpl`).

    Args:
        handles_and_offsets: the files, in the order of the changes.
        key_group_range: the key groups.
        state_size: bytes of the changes.
        checkpointed_size: bytes this checkpoint added.
        state_handle_id: identity of the handle.
        storage_identifier: name of the changelog storage, "filesystem"; None writes code 10, else 13.
    """

    handles_and_offsets: tuple[HandleAndOffset, ...]
    key_group_range: KeyGroupRange
    state_size: int
    checkpointed_size: int
    state_handle_id: str
    storage_identifier: str | None = None


@dataclass(frozen=True, slots=True)
class ChangelogStateBackendHandle:
    """Keyed state as a materialised part and the changes since (`changelog.ChangelogStateBackendHandleImpl`).

    Args:
        materialized_state_handles: the state at some earlier time, as handles of any kind of keyed state. Loading a
            file, Flink leaves out those that are None.
        non_materialized_state_handles: the changes since; Flink takes changelog handles only.
        key_group_range: the key groups.
        checkpointed_size: bytes this checkpoint added.
        materialization_id: number of the materialisation.
        state_handle_id: identity of the handle.
        checkpoint_id: the checkpoint that made it; None writes code 8, else 14. Reading 8, Flink takes
            the materialisation id for it.

    Raises:
        MetadataValueError: the range is empty, which Flink refuses for this handle alone.
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
        """Number of bytes of all parts together."""
        parts = (*self.materialized_state_handles, *self.non_materialized_state_handles)
        return sum(part.state_size for part in parts if part is not None)


# ---- operator state --------------------------------------------------------------------------------------------------


class DistributionMode(Enum):
    """Distribution of a state's elements to the subtasks (`OperatorStateHandle.Mode`); the value is Flink's ordinal."""

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
    """Operator state in a part of a merged file, code 17 (`filemerging.FileMergingOperatorStreamStateHandle`).

    Args:
        state_name_to_partition_offsets: the states.
        task_owned_dir: directory of files that a task owns.
        shared_dir: directory of the merged files.
        delegate_state_handle: the part of the file.
        is_empty: whether Flink makes it the empty variant (`EmptyFileMergingOperatorStreamStateHandle`).

    Raises:
        MetadataValueError: Flink takes a directory for no path.
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
        """Number of bytes of the part of the file."""
        return self.delegate_state_handle.state_size


StreamStateHandle: TypeAlias = (
    ByteStreamStateHandle
    | FileStateHandle
    | RelativeFileStateHandle
    | SegmentFileStateHandle
    | EmptySegmentFileStateHandle
    | KeyGroupsStateHandle
)
"""Handles that stand for one stream of bytes (`StreamStateHandle`)."""

ChangelogStateHandle: TypeAlias = InMemoryChangelogStateHandle | ChangelogStateHandleStreamImpl
"""Handles that hold changes (`changelog.ChangelogStateHandle`)."""

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
