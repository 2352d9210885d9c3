"""Key groups of a heap snapshot (`HeapSnapshotStrategy`, read by `HeapRestoreOperation`).

    key group   i32 key group; per state, in any order: i16 state id, i32 n, n entries
    entry       namespace, key, value; for a queue, the element

In a compressed stream, the entries of each state are compressed separately. Entries have no length prefix, so their
serializers must be known.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.metadata.streams.entries import Datum, Entry, KeyChecker, Part, read_datum, read_element, read_key
from spark_ckpt.metadata.streams.errors import UnknownSerializerError
from spark_ckpt.metadata.streams.headers import BackendStateType, KeyedHeader, StateMetaInfoSnapshot
from spark_ckpt.metadata.streams.snappy import SnappyInput
from spark_ckpt.metadata.streams.stream_input import StreamInput
from spark_ckpt.metadata.streams.values import read_i16

PIECE_BYTES = 1 << 20
"""Most bytes of an entry of unknown content."""


def read_heap_entries(
    data: StreamInput,
    header: KeyedHeader,
    key_group: int,
    max_parallelism: int,
    *,
    open_end: bool,
    only: int | None = None,
) -> Iterator[Entry]:
    """Entries of one key group, state by state.

    From the first state on with entries and an unknown serializer, entries have only a value: pieces of the remaining
    bytes of the key group, at most `PIECE_BYTES` each, decompressed. They include later states.

    Args:
        data: bytes of the key group.
        header: header of the stream.
        key_group: expected key group.
        max_parallelism: number of key groups.
        open_end: True if other bytes may follow.
        only: id of a state, to skip the entries of others; None for all states.

    Raises:
        UnknownSerializerError: the end of an unknown serializer cannot be found, so nothing can be separated.
        StateStreamFormatError: malformed, or another key group.
    """
    if not header.is_complete or header.key_serializer is None:
        assert header.unknown is not None
        raise header.unknown
    at = data.position
    if (found := data.i32("key_group")) != key_group:
        data.fail("key_group", f"key group {found} instead of {key_group}", at)
    if header.compressed:
        data = SnappyInput(data)
    data.enter("key_group", key_group)
    checker = KeyChecker(header.key_serializer, key_group, max_parallelism)
    seen: set[int] = set()
    for _ in header.states:
        at = data.position
        state_id = read_i16(data, "state_id")
        if state_id in seen or not 0 <= state_id < len(header.states):
            data.fail("state_id", f"state {state_id} twice" if state_id in seen else f"no state {state_id}", at)
        seen.add(state_id)
        state = header.states[state_id]
        data.enter(state.name)
        count = data.count("entries", 1)
        if count and header.is_opaque(state):
            if only not in (None, state_id) and only not in seen:
                # The state may lie in the bytes whose entries cannot be separated.
                raise header.unknown or UnknownSerializerError(
                    data.path, data.position, data.where("entries"), header.opaque_class(state)
                )
            if only not in (None, state_id):
                return
            for piece in _pieces(data):
                yield Entry(state_id, {Part.VALUE: Datum(piece, known=False)})
            return
        for index in range(count):
            data.enter("entries", index)
            data.mark()
            parts = _parts(data, state, checker)
            if only in (None, state_id):
                yield Entry(state_id, parts)
            data.leave()
        data.leave()
    if not open_end and not data.at_end():
        data.fail("states", "trailing bytes after the last state of the key group")


def _parts(data: StreamInput, state: StateMetaInfoSnapshot, checker: KeyChecker) -> dict[Part, Datum]:
    if state.kind is BackendStateType.PRIORITY_QUEUE:
        return read_element(data, state.value_serializer, checker)
    return {
        Part.NAMESPACE: read_datum(data, state.namespace_serializer, "namespace"),
        Part.KEY: read_key(data, checker),
        Part.VALUE: read_datum(data, state.value_serializer, "value"),
    }


def _pieces(data: StreamInput) -> Iterator[bytes]:
    """The rest of the stream."""
    while not data.at_end():
        data.mark()
        # A compressed stream does not know its end.
        piece = data.available(PIECE_BYTES)
        yield data.raw(piece, "entries")
