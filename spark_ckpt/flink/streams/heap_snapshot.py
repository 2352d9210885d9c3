"""Key groups of a heap snapshot (`HeapSnapshotStrategy`, read by `HeapRestoreOperation`).

    key group   i32 key group; per state, in any order: i16 state id, i32 n, n entries
    entry       namespace, key, value; for a queue, the element

In a compressed stream, the entries of each state are compressed separately. Entries have no length prefix, so their
serializers must be known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from spark_ckpt.flink.streams.entries import Datum, Entry, KeyChecker, Part, read_datum, read_element, read_key
from spark_ckpt.flink.streams.errors import UnknownSerializerError
from spark_ckpt.flink.streams.headers import BackendStateType, KeyedHeader, StateMetaInfoSnapshot
from spark_ckpt.flink.streams.snappy import SnappyInput
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types import primitives, text
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import TimerSerializer, TtlSerializer, TupleSerializer
from spark_ckpt.flink.streams.values import read_i16

_BLOCK_BYTES = 1 << 17
_LONG_STRING = 128
_SIZES: dict[Serializer, int] = {
    primitives.BOOLEAN: 1,
    primitives.BYTE: 1,
    primitives.SHORT: 2,
    primitives.INT: 4,
    primitives.LONG: 8,
    primitives.FLOAT: 4,
    primitives.DOUBLE: 8,
    primitives.VOID_NAMESPACE: 1,
    primitives.TIME_WINDOW: 16,
    text.STRING: 0,
}

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


def layout_of(header: KeyedHeader, state: StateMetaInfoSnapshot) -> tuple[int, ...] | None:
    """Bytes of the parts of each entry of a state, 0 for a String; None if it has other parts.

    A String has as many bytes as the first of them says, if it has less than 127 characters, all of them ASCII.
    """
    if state.kind is BackendStateType.PRIORITY_QUEUE:
        return _layout(state.value_serializer)
    if header.key_serializer is None:
        return None
    parts = [_layout(part) for part in (state.namespace_serializer, header.key_serializer, state.value_serializer)]
    plain = [part for part in parts if part is not None]
    return tuple(chain.from_iterable(plain)) if len(plain) == len(parts) else None


def _layout(serializer: Serializer) -> tuple[int, ...] | None:
    if isinstance(serializer, TimerSerializer):
        parts = [(8,), *map(_layout, serializer.parts)]
    elif isinstance(serializer, TtlSerializer):
        parts = [(8,), _layout(serializer.parts[1])]
    elif isinstance(serializer, TupleSerializer):
        parts = [*map(_layout, serializer.parts)]
    else:
        size = _SIZES.get(serializer)
        return None if size is None else (size,)
    plain = [part for part in parts if part is not None]
    return tuple(chain.from_iterable(plain)) if len(plain) == len(parts) else None


class Block(NamedTuple):
    """Entries of one state and key group.

    Args:
        key_group: the key group.
        content: bytes of the entries.
        ends: end of each entry.
    """

    key_group: int
    content: bytes
    ends: list[int]


def read_heap_blocks(
    data: StreamInput, header: KeyedHeader, key_group: int, state_id: int, max_parallelism: int
) -> Iterator[Block]:
    """Entries of one state in a key group, not decoded.

    Args:
        data: bytes of the key group.
        header: header of the stream.
        key_group: expected key group.
        state_id: id of the state.
        max_parallelism: number of key groups.

    Raises:
        UnknownSerializerError, StateStreamFormatError: as in `read_heap_entries`.
    """
    at = data.position
    if (found := data.i32("key_group")) != key_group:
        data.fail("key_group", f"key group {found} instead of {key_group}", at)
    if header.compressed:
        data = SnappyInput(data)
    data.enter("key_group", key_group)
    assert header.key_serializer is not None
    checker = KeyChecker(header.key_serializer, key_group, max_parallelism)
    for _ in header.states:
        at = data.position
        found = read_i16(data, "state_id")
        if not 0 <= found < len(header.states):
            data.fail("state_id", f"no state {found}", at)
        state = header.states[found]
        data.enter(state.name)
        left = data.count("entries", 1)
        if left and header.is_opaque(state):
            raise header.unknown or UnknownSerializerError(
                data.path, data.position, data.where("entries"), header.opaque_class(state)
            )
        layout = layout_of(header, state)
        while left:
            ends = [] if layout is None else _ends(data.peek(data.available(_BLOCK_BYTES)), layout, left)
            at = data.mark()
            if ends:
                data.raw(ends[-1], "entries")
            else:
                # A long text, or damage, which this names.
                _parts(data, state, checker)
                ends = [data.position - at]
            left -= len(ends)
            if found == state_id:
                yield Block(key_group, data.since(at), ends)
        if found == state_id:
            return
        data.leave()


def read_block_entries(
    block: Block, header: KeyedHeader, state_id: int, max_parallelism: int, path: str
) -> Iterator[Entry]:
    """Entries of a block.

    Raises:
        StateStreamFormatError: malformed, or a key of another key group.
    """
    assert header.key_serializer is not None
    checker = KeyChecker(header.key_serializer, block.key_group, max_parallelism)
    data = StreamInput(iter([block.content]), path, 0, len(block.content))
    for _ in block.ends:
        data.mark()
        yield Entry(state_id, _parts(data, header.states[state_id], checker))


def _ends(content: bytes, layout: Sequence[int], max_entries: int) -> list[int]:
    """Ends of the whole entries of a layout at the beginning of bytes."""
    result: list[int] = []
    at, size = 0, len(content)
    try:
        for _ in range(max_entries):
            for part in layout:
                if part:
                    at += part
                elif 0 < (units := content[at]) < _LONG_STRING and content[at + 1 : at + units].isascii():
                    at += units
                else:
                    return result
            if at > size:
                return result
            result.append(at)
    except IndexError:
        pass
    return result


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
