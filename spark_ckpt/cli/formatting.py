"""State handles and other texts in a form for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from spark_ckpt.figures import count, human_size
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    ChangelogStateBackendHandle,
    ChangelogStateHandleStreamImpl,
    CheckpointMetadata,
    EmptySegmentFileStateHandle,
    FileMergingOperatorStreamStateHandle,
    FileStateHandle,
    IncrementalRemoteKeyedStateHandle,
    InMemoryChangelogStateHandle,
    InputChannelStateHandle,
    KeyGroupRangeOffsets,
    KeyGroupsSavepointStateHandle,
    KeyGroupsStateHandle,
    OperatorStreamStateHandle,
    RelativeFileStateHandle,
    ResultSubpartitionStateHandle,
    SegmentFileStateHandle,
    required_release,
)
from spark_ckpt.metadata.properties import CheckpointProperties

Branch: TypeAlias = tuple[str, list["Branch"]]
"""A line and the branches below it."""

_MAX_TEXT = 2_000


def plain(text: str) -> str:
    """Text with terminal control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str) -> str:
    """A text, cut after 2,000 characters."""
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}... ({len(text):,} characters)"


def kind_of(properties: CheckpointProperties) -> str:
    """The kind of snapshot according to its properties, with details."""
    if (kind := properties.checkpoint_type) is None:
        return "snapshot of unknown kind"
    details = (kind.format_type, kind.post_checkpoint_action, kind.sharing_files_strategy)
    return plain(f"{kind.name} ({', '.join(detail for detail in details if detail)})")


def readable_by(metadata: CheckpointMetadata) -> str:
    """The oldest release of Flink that can read the metadata, and why."""
    required = required_release(metadata)
    return f"requires Flink {required.release} or later: {', '.join(required.reasons)}"


def summarise(handle: object) -> Branch:
    """The kind of a state handle, the location of its bytes, and the handles within it."""
    return _SUMMARIES[type(handle)](handle) if handle is not None else ("nothing", [])


def _stream(handle: object) -> str:
    return summarise(handle)[0]


def _offsets(offsets: KeyGroupRangeOffsets) -> str:
    groups = offsets.key_group_range
    if not len(groups):
        return "no key groups"
    # -1 marks a key group without data, in Flink's raw keyed state and in ours.
    present = offsets.offsets[offsets.offsets >= 0]
    if not present.size:
        return f"key groups {groups} without data"
    empty = f", {len(groups) - present.size:,} without data" if present.size < len(groups) else ""
    positions = f"{count(len(groups), 'offset')} from {int(present.min()):,} to {int(present.max()):,}"
    return f"key groups {groups}, {positions}{empty}"


def _byte_stream(handle: ByteStreamStateHandle) -> Branch:
    return f"inline, {human_size(handle.state_size)}, {plain(handle.handle_name)}", []


def _file(handle: FileStateHandle) -> Branch:
    return f"file {plain(handle.file_path)}, {human_size(handle.state_size)}", []


def _relative_file(handle: RelativeFileStateHandle) -> Branch:
    return f"file {plain(handle.relative_path)}, {human_size(handle.state_size)}", []


def _segment_file(handle: SegmentFileStateHandle) -> Branch:
    size = human_size(handle.state_size)
    scope = handle.scope.name.lower()
    return f"{size} from byte {handle.start_pos:,} of {scope} file {plain(handle.file_path)}", []


def _empty_segment_file(handle: EmptySegmentFileStateHandle) -> Branch:
    return "empty part of a merged file", []


def _key_groups(handle: KeyGroupsStateHandle) -> Branch:
    return f"{_offsets(handle.group_range_offsets)} in {_stream(handle.delegate_state_handle)}", []


def _key_groups_savepoint(handle: KeyGroupsSavepointStateHandle) -> Branch:
    return f"canonical, {_offsets(handle.group_range_offsets)} in {_stream(handle.delegate_state_handle)}", []


def _incremental(handle: IncrementalRemoteKeyedStateHandle) -> Branch:
    line = (
        f"incremental, key groups {handle.key_group_range}, backend {plain(handle.backend_identifier)}, "
        f"checkpoint {handle.checkpoint_id}"
    )
    below: list[Branch] = [(f"meta: {_stream(handle.meta_data_state_handle)}", [])]
    for kind, files in (("shared", handle.shared_state), ("private", handle.private_state)):
        below += [(f"{kind} {plain(file.local_path)}: {_stream(file.handle)}", []) for file in files]
    return line, below


def _changelog(handle: ChangelogStateBackendHandle) -> Branch:
    line = f"changelog, key groups {handle.key_group_range}, materialisation {handle.materialization_id}"
    changes = [summarise(part) for part in handle.non_materialized_state_handles]
    return line, [
        *map(summarise, handle.materialized_state_handles),
        *((f"changes: {text}", below) for text, below in changes),
    ]


def _in_memory_changes(handle: InMemoryChangelogStateHandle) -> Branch:
    size = human_size(handle.state_size)
    return f"{count(len(handle.changes), 'change')} from {handle.from_} to {handle.to}, inline, {size}", []


def _changes_in_files(handle: ChangelogStateHandleStreamImpl) -> Branch:
    parts = handle.handles_and_offsets
    size = human_size(handle.state_size)
    line = f"changes of key groups {handle.key_group_range} in {count(len(parts), 'file')}, {size}"
    return line, [(f"from byte {part.offset:,} of {_stream(part.handle)}", []) for part in parts]


def _operator(handle: OperatorStreamStateHandle | FileMergingOperatorStreamStateHandle) -> Branch:
    states = handle.state_name_to_partition_offsets.items()
    below: list[Branch] = [
        (f"{plain(name)}: {info.distribution_mode.name}, {_positions(info.offsets)}", []) for name, info in states
    ]
    return f"{count(len(below), 'state')} in {_stream(handle.delegate_state_handle)}", below


def _input_channel(handle: InputChannelStateHandle) -> Branch:
    where = f"gate {handle.info.gate_idx}, channel {handle.info.input_channel_idx}"
    return f"{where}: {_buffers(handle.offsets, handle.state_size)} in {_stream(handle.delegate)}", []


def _result_subpartition(handle: ResultSubpartitionStateHandle) -> Branch:
    where = f"partition {handle.info.partition_idx}, subpartition {handle.info.sub_partition_idx}"
    return f"{where}: {_buffers(handle.offsets, handle.state_size)} in {_stream(handle.delegate)}", []


def _buffers(offsets: tuple[int, ...], size: int) -> str:
    return f"{count(len(offsets), 'buffer')}, {human_size(size)}"


def _positions(offsets: Iterable[int]) -> str:
    positions = list(offsets)
    if not positions:
        return "no elements"
    return f"{count(len(positions), 'element')} from {min(positions):,} to {max(positions):,}"


_SUMMARIES: dict[type, Callable[[Any], Branch]] = {
    ByteStreamStateHandle: _byte_stream,
    FileStateHandle: _file,
    RelativeFileStateHandle: _relative_file,
    SegmentFileStateHandle: _segment_file,
    EmptySegmentFileStateHandle: _empty_segment_file,
    KeyGroupsStateHandle: _key_groups,
    KeyGroupsSavepointStateHandle: _key_groups_savepoint,
    IncrementalRemoteKeyedStateHandle: _incremental,
    ChangelogStateBackendHandle: _changelog,
    InMemoryChangelogStateHandle: _in_memory_changes,
    ChangelogStateHandleStreamImpl: _changes_in_files,
    OperatorStreamStateHandle: _operator,
    FileMergingOperatorStreamStateHandle: _operator,
    InputChannelStateHandle: _input_channel,
    ResultSubpartitionStateHandle: _result_subpartition,
}
