"""Managed operator state: list states, with one element per offset, and broadcast states.

    header, then, anywhere after it: an element at each offset of a list state; at the first offset of a broadcast
    state, i32 n, then n times key, value

In a compressed stream, an offset is that of the chunk in which the element begins. Flink:
`DefaultOperatorStateBackendSnapshotStrategy`, `OperatorStateRestoreOperation`, `CompressibleFSDataOutputStream`.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.flink.streams.entries import Datum, Entry, Part, read_datum
from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.streams.headers import OperatorHeader, StateMetaInfoSnapshot, read_operator_header
from spark_ckpt.flink.streams.snappy import SnappyInput
from spark_ckpt.flink.streams.state_files import StateStream
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.metadata.handles import OperatorStateHandle


class ManagedOperatorState:
    """Managed operator state of one handle.

    Args:
        handle: handle of the state.
        stream: open stream of the handle; must stay open.

    Raises:
        StateStreamFormatError: the header is malformed, or lacks a state of the handle.
        StorageError: the stream cannot be read.
    """

    def __init__(self, handle: OperatorStateHandle, stream: StateStream) -> None:
        self._stream = stream
        self._offsets = {name: info.offsets for name, info in handle.state_name_to_partition_offsets.items()}
        first = min((offset for offsets in self._offsets.values() for offset in offsets), default=stream.size)
        self.header: OperatorHeader = read_operator_header(stream.input(0, first))
        """Header of the stream."""
        if self.header.unknown is None and (missing := self._offsets.keys() - {state.name for state in self.states}):
            reason = f"the stream lacks state {min(missing)!r} of its handle"
            raise StateStreamFormatError(stream.path, 0, "states", reason)

    @property
    def states(self) -> tuple[StateMetaInfoSnapshot, ...]:
        """States, list states first."""
        return (*self.header.list_states, *self.header.broadcast_states)

    def entries(self) -> Iterator[Entry]:
        """Elements of all list states, then keys and values of all broadcast states. State ids are indices in `states`.

        States from the first unknown serializer on (`header.unknown`) are not included.

        Raises:
            StateStreamFormatError: malformed state.
            StorageError: the stream cannot be read.
        """
        for state_id, state in enumerate(self.states):
            offsets = self._offsets.get(state.name, ())
            if state_id < len(self.header.list_states):
                for index, offset in enumerate(offsets):
                    data = self._at(offset, state, index)
                    yield Entry(state_id, {Part.ELEMENT: read_datum(data, state.value_serializer, "element")})
            elif offsets:
                yield from self._broadcast(state_id, state, offsets[0])

    def _broadcast(self, state_id: int, state: StateMetaInfoSnapshot, offset: int) -> Iterator[Entry]:
        data = self._at(offset, state, 0)
        for _ in range(data.count("entries", 1)):
            data.mark()
            parts: dict[Part, Datum] = {
                Part.KEY: read_datum(data, state.key_serializer, "key"),
                Part.VALUE: read_datum(data, state.value_serializer, "value"),
            }
            yield Entry(state_id, parts)

    def _at(self, offset: int, state: StateMetaInfoSnapshot, index: int) -> StreamInput:
        data = self._stream.input(offset)
        if self.header.compressed:
            data = SnappyInput(data)
        data.enter(state.name, index)
        return data
