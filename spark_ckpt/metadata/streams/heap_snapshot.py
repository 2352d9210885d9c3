"""Key groups of a heap snapshot (`HeapSnapshotStrategy`, read by `HeapRestoreOperation`).

    key group   i32 key group; per state, in any order: i16 state id, i32 n, n entries
    entry       namespace, key, value; for a queue, the element

In a compressed stream, the entries of each state are compressed separately. Entries have no length prefix, so their
serializers must be known.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.metadata.streams.entries import Datum, Entry, KeyChecker, Part, read_datum, read_element, read_key
from spark_ckpt.metadata.streams.headers import BackendStateType, KeyedHeader, StateMetaInfoSnapshot
from spark_ckpt.metadata.streams.snappy import SnappyInput
from spark_ckpt.metadata.streams.stream_input import StreamInput
from spark_ckpt.metadata.streams.values import read_i16


def read_heap_entries(
    data: StreamInput, header: KeyedHeader, key_group: int, max_parallelism: int, *, open_end: bool
) -> Iterator[Entry]:
    """Entries of one key group, state by state.

    Args:
        data: bytes of the key group.
        header: header of the stream.
        key_group: expected key group.
        max_parallelism: number of key groups.
        open_end: True if other bytes may follow.

    Raises:
        UnknownSerializerError: a serializer is unknown, so entries cannot be separated.
        StateStreamFormatError: malformed, or another key group.
    """
    if header.unknown is not None:
        raise header.unknown
    assert header.key_serializer is not None
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
        for index in range(data.count("entries", 1)):
            data.enter("entries", index)
            data.mark()
            yield Entry(state_id, _parts(data, state, checker))
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
