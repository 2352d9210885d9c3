"""Reader of all state streams of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_ckpt.checkpoint.compose import NO_DATA
from spark_ckpt.cli.results.inspection import Inspection
from spark_ckpt.cli.results.streams import StateReport, StreamReport
from spark_ckpt.flink.streams import (
    METADATA_KEY_GROUP,
    Datum,
    Entry,
    KeyedState,
    ManagedOperatorState,
    StateFiles,
    StateMetaInfoSnapshot,
    StateStream,
    read_buffers,
    read_changes,
    read_keyed_header,
    read_raw_parts,
)
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.segments import HEADER_BYTES, decode_block
from spark_ckpt.location.file_system import file_system_of
from spark_ckpt.metadata import (
    ChangelogStateBackendHandle,
    ChangelogStateHandleStreamImpl,
    IncrementalRemoteKeyedStateHandle,
    InMemoryChangelogStateHandle,
    InputChannelStateHandle,
    KeyedStateHandle,
    KeyGroupRangeOffsets,
    KeyGroupsSavepointStateHandle,
    KeyGroupsStateHandle,
    OperatorState,
    OperatorStateHandle,
    OperatorSubtaskState,
    ResultSubpartitionStateHandle,
    StateChange,
    relocate,
)

_BODY_LENGTH = slice(24, 28)


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """Options for reading streams.

    Args:
        samples: number of entries to keep per state.
        moved: pairs of old and new directories of moved files.
        allow_outside: True to open paths outside the checkpoint's own storage.
    """

    samples: int = 0
    moved: Sequence[tuple[str, str]] = ()
    allow_outside: bool = False


def read_streams(inspection: Inspection, request: StreamRequest) -> Iterator[StreamReport]:
    """A report of each stream, in the order of operators, subtasks and handles.

    Raises:
        PathPrefixError, NothingToRelocateError: a directory of `moved` is not absolute, or no path starts with it.
    """
    metadata = inspection.found.metadata
    for old, new in request.moved:
        metadata = relocate(metadata, old, new).metadata
    also = [new for _, new in request.moved]
    files = StateFiles(inspection.found.path, also, allow_outside=request.allow_outside, file_system_of=file_system_of)
    for operator in metadata.operator_states:
        for index, subtask in sorted(operator.subtask_states.items()):
            yield from _SubtaskReader(inspection, request.samples, files, operator, index).read(subtask)


class _SubtaskReader:
    """Reads the streams of one subtask."""

    def __init__(
        self, inspection: Inspection, samples: int, files: StateFiles, operator: OperatorState, index: int
    ) -> None:
        self._inspection = inspection
        self._samples = samples
        self._files = files
        self._operator = operator
        self._index = index
        self._is_ours = operator.operator_id in inspection.stores

    def read(self, subtask: OperatorSubtaskState) -> Iterator[StreamReport]:
        if (operator_state := subtask.managed_operator_state) is not None:
            # Our source offsets have no header: no backend of Flink has written them.
            ours = self._operator.operator_id in self._inspection.sources
            read = self._raw_operator_state if ours else self._operator_state
            yield read("managed operator state", operator_state)
        if subtask.raw_operator_state is not None:
            yield self._raw_operator_state("raw operator state", subtask.raw_operator_state)
        if subtask.managed_keyed_state is not None:
            yield from self._keyed_state("managed keyed state", subtask.managed_keyed_state)
        if isinstance(subtask.raw_keyed_state, KeyGroupsStateHandle):
            yield self._raw_keyed_state(subtask.raw_keyed_state)
        yield from map(self._channel_state, subtask.input_channel_state)
        yield from map(self._channel_state, subtask.result_subpartition_state)

    def _report(self, role: str, form: str) -> StreamReport:
        return StreamReport(self._operator, self._inspection.name_of(self._operator), self._index, role, form)

    # ---- operator state ----------------------------------------------------------------------------------------------

    def _operator_state(self, role: str, handle: OperatorStateHandle) -> StreamReport:
        report = self._report(role, "operator state")
        with report.collecting(), self._files.open(handle.delegate_state_handle) as stream:
            report.opened(stream)
            state = ManagedOperatorState(handle, stream)
            report.compressed = state.header.compressed
            report.states = [_state_report(meta) for meta in state.states]
            self._count(report, state.entries())
            if state.header.unknown is not None:
                report.errors.append(state.header.unknown)
        return report

    def _raw_operator_state(self, role: str, handle: OperatorStateHandle) -> StreamReport:
        report = self._report(role, "raw bytes")
        if (source := self._inspection.sources.get(self._operator.operator_id)) is not None:
            report.positions = source.positions
        states: list[StateReport] = []
        offsets: list[int] = []
        for name, info in handle.state_name_to_partition_offsets.items():
            report.states.append(StateReport(name, "RAW"))
            states += report.states[-1:] * len(info.offsets)
            offsets += info.offsets
        with report.collecting(), self._files.open(handle.delegate_state_handle) as stream:
            report.opened(stream)
            for index, part in read_raw_parts(stream, offsets):
                states[index].add({"partition": Datum(part, known=False)}, self._samples)
        return report

    # ---- keyed state -------------------------------------------------------------------------------------------------

    def _keyed_state(self, role: str, handle: KeyedStateHandle) -> Iterator[StreamReport]:
        if isinstance(handle, (KeyGroupsStateHandle, KeyGroupsSavepointStateHandle)):
            yield self._key_groups(role, handle)
        elif isinstance(handle, IncrementalRemoteKeyedStateHandle):
            yield self._rocksdb(role, handle)
        elif isinstance(handle, ChangelogStateBackendHandle):
            for part in handle.materialized_state_handles:
                if part is not None:
                    yield from self._keyed_state(role if self._is_ours else f"{role}, materialised part", part)
            for changes in handle.non_materialized_state_handles:
                yield from self._keyed_state(f"{role}, changes", changes)
        else:
            yield self._changelog(role, handle)

    def _key_groups(self, role: str, handle: KeyGroupsStateHandle | KeyGroupsSavepointStateHandle) -> StreamReport:
        if self._is_ours:
            report = self._report(role, "segment")
            with report.collecting(), self._files.open(handle.delegate_state_handle) as stream:
                _read_segment(handle.group_range_offsets, stream, report, self._samples)
            return report
        report = self._report(role, "key groups")
        with report.collecting(), self._files.open(handle.delegate_state_handle) as stream:
            report.opened(stream)
            state = KeyedState(handle, stream, self._operator.max_parallelism)
            report.form = state.layout.value
            report.compressed = state.header.compressed
            report.key_serializer = _text(state.header.key_serializer)
            report.states = [_state_report(meta, can_be_read=state.can_read_entries) for meta in state.header.states]
            if state.header.unknown is not None:
                report.errors.append(state.header.unknown)
            if state.can_read_entries:
                for group in state.key_groups():
                    self._count(report, state.entries(group), group.key_group)
            else:
                whole = StateReport("key groups as a whole", "RAW")
                report.states.append(whole)
                for group in state.key_groups():
                    whole.add({"key group": Datum(state.raw(group), known=False)}, self._samples, group.key_group)
        return report

    def _rocksdb(self, role: str, handle: IncrementalRemoteKeyedStateHandle) -> StreamReport:
        report = self._report(role, "files of RocksDB")
        if handle.meta_data_state_handle is not None:
            with report.collecting(), self._files.open(handle.meta_data_state_handle) as stream:
                report.opened(stream)
                data = stream.input()
                header = read_keyed_header(data)
                report.key_serializer = _text(header.key_serializer)
                report.states = [_state_report(meta, can_be_read=False) for meta in header.states]
                if header.unknown is not None:
                    report.errors.append(header.unknown)
                if header.is_complete and not data.at_end():
                    data.fail("header", "bytes follow the description of the states")
        for file in (*handle.shared_state, *handle.private_state):
            with report.collecting(), self._files.open(file.handle) as stream:
                report.opened(stream)
        return report

    def _changelog(
        self, role: str, handle: ChangelogStateHandleStreamImpl | InMemoryChangelogStateHandle
    ) -> StreamReport:
        report = self._report(role, "changelog")
        descriptions, changes = StateReport("descriptions of states", "CHANGES"), StateReport("changes", "CHANGES")
        report.states = [descriptions, changes]

        def count(found: Iterable[StateChange]) -> None:
            for change in found:
                sample = {"change": Datum(change.change, known=False)}
                if change.key_group == METADATA_KEY_GROUP:
                    descriptions.add(sample, self._samples)
                else:
                    changes.add(sample, self._samples, change.key_group)

        if isinstance(handle, InMemoryChangelogStateHandle):
            count(handle.changes)
            report.size = handle.state_size
            return report
        for part in handle.handles_and_offsets:
            if part.handle is not None:
                with report.collecting(), self._files.open(part.handle, size_is_known=False) as stream:
                    report.opened(stream)
                    report.compressed = stream.input().boolean("compressed")
                    count(read_changes(stream, part.offset))
        return report

    def _raw_keyed_state(self, handle: KeyGroupsStateHandle) -> StreamReport:
        report = self._report("raw keyed state", "raw bytes")
        state = StateReport("key groups", "RAW")
        report.states = [state]
        offsets = handle.group_range_offsets
        with report.collecting(), self._files.open(handle.delegate_state_handle) as stream:
            report.opened(stream)
            for index, part in read_raw_parts(stream, offsets.offsets.tolist()):
                key_group = offsets.key_group_range.start + index
                state.add({"key group": Datum(part, known=False)}, self._samples, key_group)
        return report

    # ---- channel state -----------------------------------------------------------------------------------------------

    def _channel_state(self, handle: InputChannelStateHandle | ResultSubpartitionStateHandle) -> StreamReport:
        if isinstance(handle, InputChannelStateHandle):
            role = f"input of gate {handle.info.gate_idx}, channel {handle.info.input_channel_idx}"
        else:
            role = f"result of partition {handle.info.partition_idx}, subpartition {handle.info.sub_partition_idx}"
        report = self._report(role, "channel state")
        state = StateReport("buffers", "CHANNEL")
        report.states = [state]
        with report.collecting(), self._files.open(handle.delegate) as stream:
            report.opened(stream)
            for buffer in read_buffers(handle, stream):
                state.add({"buffer": Datum(buffer, known=False)}, self._samples)
        return report

    def _count(self, report: StreamReport, entries: Iterable[Entry], key_group: int | None = None) -> None:
        for entry in entries:
            sample = {part.value: datum for part, datum in entry.parts.items()}
            self._state(report, entry.state).add(sample, self._samples, key_group)

    @staticmethod
    def _state(report: StreamReport, state_id: int) -> StateReport:
        """The report of a state. States behind an unknown serializer have no name."""
        while len(report.states) <= state_id:
            report.states.append(StateReport(f"state {len(report.states)}", "unknown"))
        return report.states[state_id]


def _state_report(state: StateMetaInfoSnapshot, *, can_be_read: bool = True) -> StateReport:
    kind = state.keyed_state_type or state.options.get("OPERATOR_STATE_DISTRIBUTION_MODE") or state.kind.name
    serializers: Mapping[str, str] = {
        name.removesuffix("_SERIALIZER").lower(): str(serializer)
        for name, serializer in sorted(state.serializers.items())
    }
    return StateReport(state.name, kind, serializers, can_be_read)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _read_segment(offsets: KeyGroupRangeOffsets, stream: StateStream, report: StreamReport, samples: int) -> None:
    """Counts the entries of a segment, with a state per column family. The size is that of the blocks.

    Raises:
        SegmentError: a block is damaged or unexpected.
        StorageError: the stream cannot be read.
    """
    report.path = stream.path
    states: dict[str, StateReport] = {}
    for key_group, offset in zip(offsets.key_group_range, offsets.offsets.tolist(), strict=True):
        if offset == NO_DATA:
            continue
        content = _read_block(stream, offset)
        report.size += len(content)
        block = decode_block(content, 0, stream.path, offset)
        if block.key_group != key_group:
            raise SegmentError(stream.path, offset + 8, f"found key group {block.key_group}; expected {key_group}")
        report.form = f"segment, {block.kind.name.lower()} of version {block.version}"
        for section in block.sections:
            name = section.column_family or "default"
            if name not in states:
                states[name] = StateReport(name, "LIST" if section.lists else "VALUE")
                report.states.append(states[name])
            for key, value in section.entries:
                sample = {"key": Datum(key, known=False)}
                if value is None:
                    states[name].removed += 1
                else:
                    raw = b"".join(value) if isinstance(value, tuple) else value
                    sample["value"] = Datum(raw, known=False)
                states[name].add(sample, samples, key_group)


def _read_block(stream: StateStream, offset: int) -> bytes:
    """The bytes of a block, fewer if it is cut off."""
    data = stream.input(offset)
    data.mark()
    header = data.raw(min(HEADER_BYTES, data.remaining), "block")
    length = int.from_bytes(header[_BODY_LENGTH], "big", signed=True)
    data.raw(max(0, min(length, data.remaining)), "block")
    return data.since(offset)
