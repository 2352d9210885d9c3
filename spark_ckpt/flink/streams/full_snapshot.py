"""Key groups of a full snapshot: a canonical savepoint, or an older full checkpoint of RocksDB.

    key group   i16 state id, entries; after the last entry of a state, the id of the next, or 0xFFFF at the end
    entry       bytes key, bytes value; the top bit of the key marks the last entry of a state

    key         key group (1 byte for up to 128 key groups, else 2), key, namespace; for a map, then its key; for a
                queue, only key group and element. If neither key nor namespace has a fixed length, each is followed by
                its length, little-endian, in as few bytes as possible.
    value       for a list, the elements, separated by commas; for a map, bool is null, then the value, which may have
                bytes even if it is null

In a compressed stream, each key group is compressed as a whole. Flink: `FullSnapshotAsyncWriter`, read by
`FullSnapshotRestoreOperation`; `CompositeKeySerializationUtils`, `ListDelimitedSerializer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spark_ckpt.flink.streams.entries import Datum, Entry, KeyChecker, Part, read_datum, read_element, read_key
from spark_ckpt.flink.streams.headers import BackendStateType, KeyedHeader, StateMetaInfoSnapshot
from spark_ckpt.flink.streams.snappy import SnappyInput
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import read_map_value
from spark_ckpt.flink.streams.values import Value

END_OF_KEY_GROUP = 0xFFFF
"""End marker in place of a next state id (`FullSnapshotUtil.END_OF_KEY_GROUP_MARK`)."""

_LAST_OF_STATE = 0x80
_MARK = bytes([_LAST_OF_STATE])
_DELIMITER = ord(",")
_MAX_KEY_GROUPS_OF_ONE_BYTE = 128


def read_full_entries(
    data: StreamInput,
    header: KeyedHeader,
    key_group: int,
    max_parallelism: int,
    *,
    open_end: bool,
    only: int | None = None,
) -> Iterator[Entry]:
    """Entries of one key group, state by state.

    Parts with unknown serializers are bytes. If the serializer of the key or of the namespace is unknown, so are the
    ends of both, and the entry has a composite key.

    Args:
        data: bytes of the key group.
        header: header of the stream.
        key_group: expected key group.
        max_parallelism: number of key groups.
        open_end: True if other bytes may follow.
        only: id of a state, to skip the entries of others; None for all states.

    Raises:
        StateStreamFormatError: malformed, or another key group.
    """
    if header.compressed:
        data = SnappyInput(data)
    data.enter("key_group", key_group)
    reader = _EntryReader(data, header, key_group, max_parallelism)
    at = data.position
    state_id = data.u16("state_id")
    while state_id != END_OF_KEY_GROUP:
        if header.is_complete and state_id >= len(header.states):
            data.fail("state_id", f"no state {state_id}", at)
        more = True
        if only not in (None, state_id):
            while more:
                data.mark()
                more = reader.skip()
        while more:
            data.mark()
            parts, more = reader.read(state_id)
            yield Entry(state_id, parts)
        at = data.position
        state_id = data.u16("state_id")
    if not open_end and not data.at_end():
        data.fail("end", "trailing bytes after the key group")


def read_raw_rows(
    data: StreamInput, header: KeyedHeader, key_group: int, state_id: int
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of one state in a key group, as RocksDB has them: no mark at the last one.

    Args:
        data: bytes of the key group.
        header: header of the stream.
        key_group: number of the key group, for errors.
        state_id: position of the state in the header.

    Raises:
        StateStreamFormatError: malformed.
    """
    if header.compressed:
        data = SnappyInput(data)
    data.enter("key_group", key_group)
    found = data.u16("state_id")
    while found != END_OF_KEY_GROUP:
        more = True
        while more:
            data.mark()
            key, value = data.byte_array("key"), data.byte_array("value")
            more = not key[:1] >= _MARK
            if found == state_id:
                yield (key if more else bytes([key[0] & ~_LAST_OF_STATE]) + key[1:]), value
        found = data.u16("state_id")


def read_row_entries(
    rows: Iterable[tuple[bytes, bytes]],
    header: KeyedHeader,
    state_id: int,
    key_group: int,
    max_parallelism: int,
    *,
    path: str,
) -> Iterator[Entry]:
    """Entries of one state and key group from rows of RocksDB, whose keys and values are those of a full snapshot.

    Args:
        rows: keys and values.
        header: header of the meta stream.
        state_id: position of the state in the header.
        key_group: expected key group.
        max_parallelism: number of key groups.
        path: name of the rows, for errors.

    Raises:
        StateStreamFormatError: malformed, or another key group.
    """
    data = StreamInput((_with_length(key) + _with_length(value) for key, value in rows), path)
    data.enter("key_group", key_group)
    reader = _EntryReader(data, header, key_group, max_parallelism)
    while not data.at_end():
        data.mark()
        parts, _ = reader.read(state_id)
        yield Entry(state_id, parts)


def key_group_of_row(key: bytes, max_parallelism: int) -> int:
    """Key group with which the key of a row begins; of a key that is too short, that of its bytes."""
    return int.from_bytes(key[: prefix_bytes(max_parallelism)], "big")


def prefix_bytes(max_parallelism: int) -> int:
    """Bytes of the key group before each key."""
    return 1 if max_parallelism <= _MAX_KEY_GROUPS_OF_ONE_BYTE else 2


def _with_length(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


class _EntryReader:
    """Reader of the entries of one key group."""

    def __init__(self, data: StreamInput, header: KeyedHeader, key_group: int, max_parallelism: int) -> None:
        self._data = data
        self._header = header
        self._key_group = key_group
        self._prefix_bytes = prefix_bytes(max_parallelism)
        self._checker = (
            KeyChecker(header.key_serializer, key_group, max_parallelism) if header.key_serializer is not None else None
        )
        self._state: StateMetaInfoSnapshot | None = None
        self._enter(None)

    def _enter(self, state: StateMetaInfoSnapshot | None) -> None:
        """Find out once which parts of a state's entries have unknown serializers."""
        self._state = state
        self._has_opaque_key = self._has_opaque_map_key = self._has_opaque_value = False
        if state is None or self._checker is None:
            return
        value = state.value_serializer
        self._has_opaque_value = value.is_opaque
        if state.kind is BackendStateType.KEY_VALUE:
            self._has_opaque_key = self._checker.key_serializer.is_opaque or state.namespace_serializer.is_opaque
            if state.keyed_state_type == "MAP":
                map_key, serializer = self._nested(state, 2)
                self._has_opaque_map_key, self._has_opaque_value = map_key.is_opaque, serializer.is_opaque

    def read(self, state_id: int) -> tuple[dict[Part, Datum], bool]:
        """Parts of the next entry, and True if another entry of the state follows."""
        data = self._data
        state = self._header.states[state_id] if state_id < len(self._header.states) else None
        if state is not self._state:
            self._enter(state)
        end = data.count("key", 1) + data.position
        more = self._key_group_prefix()
        if state is None or self._checker is None:
            parts = {Part.COMPOSITE_KEY: self._opaque("key", end)}
        elif state.kind is BackendStateType.PRIORITY_QUEUE:
            if self._has_opaque_value:
                parts = {Part.ELEMENT: self._opaque("element", end)}
            else:
                parts = read_element(data, state.value_serializer, self._checker)
        elif self._has_opaque_key:
            parts = {Part.COMPOSITE_KEY: self._opaque("key", end)}
        else:
            parts = self._key(state, self._checker, end)
        self._check_end("key", end)
        end = data.count("value", 1) + data.position
        if state is None:
            parts[Part.VALUE] = self._opaque("value", end)
        elif state.kind is BackendStateType.KEY_VALUE:
            parts[Part.VALUE] = self._datum(state, end)
        self._check_end("value", end)
        return parts, more

    def skip(self) -> bool:
        """Skip the next entry; True if another entry of the state follows."""
        data = self._data
        end = data.count("key", 1) + data.position
        more = self._key_group_prefix()
        data.skip(max(0, end - data.position), "key")
        self._check_end("key", end)
        data.skip(data.count("value", 1), "value")
        return more

    def _datum(self, state: StateMetaInfoSnapshot, end: int) -> Datum:
        """Value of an entry."""
        at = self._data.position
        if state.keyed_state_type == "MAP":
            if self._has_opaque_value:
                is_null = self._data.boolean("value")
                return Datum(self._rest("value", end)) if is_null else self._opaque("value", end)
        elif self._has_opaque_value:
            return self._opaque("value", end)
        value = self._value(state, end)
        return Datum(self._data.since(at), value)

    def _opaque(self, field: str, end: int) -> Datum:
        return Datum(self._rest(field, end), known=False)

    def _check_end(self, field: str, end: int) -> None:
        if self._data.position != end:
            self._data.fail(field, f"by its length it ends at byte {end}")

    def _rest(self, field: str, end: int) -> bytes:
        return self._data.raw(max(0, end - self._data.position), field)

    def _key_group_prefix(self) -> bool:
        at = self._data.position
        first = self._data.u8("key")
        found = first & ~_LAST_OF_STATE
        if self._prefix_bytes == 2:
            found = found << 8 | self._data.u8("key")
        if found != self._key_group:
            self._data.fail("key", f"a key of key group {found} in key group {self._key_group}", at)
        return not first & _LAST_OF_STATE

    def _key(self, state: StateMetaInfoSnapshot, checker: KeyChecker, end: int) -> dict[Part, Datum]:
        namespace_serializer = state.namespace_serializer
        with_lengths = not checker.key_serializer.has_fixed_length and not namespace_serializer.has_fixed_length
        parts = {Part.KEY: read_key(self._data, checker)}
        if with_lengths:
            self._length_of(parts[Part.KEY], "key")
        parts[Part.NAMESPACE] = read_datum(self._data, namespace_serializer, "namespace")
        if with_lengths:
            self._length_of(parts[Part.NAMESPACE], "namespace")
        if state.keyed_state_type == "MAP":
            map_key, _ = self._nested(state, 2)
            parts[Part.MAP_KEY] = (
                self._opaque("map_key", end) if self._has_opaque_map_key else read_datum(self._data, map_key, "map_key")
            )
        return parts

    def _length_of(self, datum: Datum, field: str) -> None:
        """Read the length that follows a datum, and check it."""
        at = self._data.position
        length = len(datum.raw)
        expected = length.to_bytes(max(1, (length.bit_length() + 7) // 8), "little")
        if self._data.raw(len(expected), field) != expected:
            self._data.fail(field, f"the repeated length differs from the {length} bytes read", at)

    def _value(self, state: StateMetaInfoSnapshot, end: int) -> Value:
        if state.keyed_state_type == "MAP":
            _, serializer = self._nested(state, 2)
            value = read_map_value(self._data, serializer, "value")
            if value is None:
                # RocksDB writes nothing more. The heap backend also writes the null with the serializer.
                self._rest("value", end)
            return value
        if state.keyed_state_type != "LIST":
            return state.value_serializer.read(self._data, "value")
        (element,) = self._nested(state, 1)
        elements: list[Value] = []
        while self._data.position < end:
            at = self._data.position
            if elements and (found := self._data.u8("value")) != _DELIMITER:
                self._data.fail("value", f"{found:#04x} instead of the comma between list elements", at)
            elements.append(element.read(self._data, "value"))
        return tuple(elements)

    def _nested(self, state: StateMetaInfoSnapshot, number: int) -> tuple[Serializer, ...]:
        nested = state.value_serializer.nested
        if len(nested) != number:
            self._data.fail("value", f"a {state.keyed_state_type} state with the serializer {state.value_serializer}")
        return nested
