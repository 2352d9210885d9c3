"""Headers of keyed streams and operator streams: their states and serializers.

keyed       i32 6, bool compressed, SER key serializer, i16 n, META of each      `KeyedBackendSerializationProxy`
operator    i32 5 or 6, for 6 bool compressed, then for list states, and again for broadcast states,
            i16 n, META of each                                               `OperatorBackendSerializationProxy`
META        utf name, i32 kind, options, serializers                      `StateMetaInfoSnapshotReadersWriters`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from spark_ckpt.flink.streams.errors import UnknownSerializerError, UnsupportedStateKindError
from spark_ckpt.flink.streams.recovery import MAX_UNKNOWN, GuidedInput, HeaderSearch
from spark_ckpt.flink.streams.serializers import read_serializer
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.values import read_i16

_KEYED_VERSION = 6
_OPERATOR_VERSION, _OPERATOR_VERSION_WITHOUT_COMPRESSION = 6, 5
_MIN_OPTION = 2 + 2
_MIN_SERIALIZER = 2 + 4 + 2 + 4
_MAX_RECOVERED = 1 << 20
"""Largest header that is searched for the ends of unknown snapshots."""

NAMESPACE_SERIALIZER, KEY_SERIALIZER, VALUE_SERIALIZER = "NAMESPACE_SERIALIZER", "KEY_SERIALIZER", "VALUE_SERIALIZER"
"""Names of the serializers of a state (`StateMetaInfoSnapshot.CommonSerializerKeys`)."""


class BackendStateType(Enum):
    """Kind of state (`StateMetaInfoSnapshot.BackendStateType`). The value is Flink's ordinal."""

    KEY_VALUE = 0
    OPERATOR = 1
    BROADCAST = 2
    PRIORITY_QUEUE = 3


_SERIALIZERS_OF = {
    BackendStateType.KEY_VALUE: {NAMESPACE_SERIALIZER, VALUE_SERIALIZER},
    BackendStateType.OPERATOR: {VALUE_SERIALIZER},
    BackendStateType.BROADCAST: {KEY_SERIALIZER, VALUE_SERIALIZER},
    BackendStateType.PRIORITY_QUEUE: {VALUE_SERIALIZER},
}


_KEYED = (BackendStateType.KEY_VALUE, BackendStateType.PRIORITY_QUEUE)


@dataclass(frozen=True, slots=True)
class StateMetaInfoSnapshot:
    """One state of a stream (`metainfo.StateMetaInfoSnapshot`).

    Args:
        name: name of the state, unique in the stream.
        kind: kind of state.
        options: options, such as `KEYED_STATE_TYPE`: `VALUE`, `LIST`, `REDUCING`, `AGGREGATING` or `MAP`.
        serializers: serializers of this kind of state, by their names above.
    """

    name: str
    kind: BackendStateType
    options: Mapping[str, str]
    serializers: Mapping[str, Serializer]

    @property
    def namespace_serializer(self) -> Serializer:
        """Serializer of the namespaces of a `KEY_VALUE` state."""
        return self.serializers[NAMESPACE_SERIALIZER]

    @property
    def key_serializer(self) -> Serializer:
        """Serializer of the keys of a `BROADCAST` state."""
        return self.serializers[KEY_SERIALIZER]

    @property
    def value_serializer(self) -> Serializer:
        """Serializer of the values or elements."""
        return self.serializers[VALUE_SERIALIZER]

    @property
    def keyed_state_type(self) -> str | None:
        """Option `KEYED_STATE_TYPE`."""
        return self.options.get("KEYED_STATE_TYPE")


@dataclass(frozen=True, slots=True)
class KeyedHeader:
    """Header of a keyed stream (`KeyedBackendSerializationProxy`).

    Args:
        compressed: True if the key groups are compressed.
        key_serializer: serializer of the keys of all states; None if unknown.
        states: states in the order of their ids.
        unknown: error of the first unknown serializer. Where it is, there is an `OpaqueSerializer`.
        is_complete: False if the end of an unknown snapshot cannot be found: `states` then lacks its state and all
            later ones.
        count: number of states in the stream, those that `states` lacks included; None if unknown.
    """

    compressed: bool
    key_serializer: Serializer | None
    states: tuple[StateMetaInfoSnapshot, ...]
    unknown: UnknownSerializerError | None = None
    is_complete: bool = True
    count: int | None = None

    def is_opaque(self, state: StateMetaInfoSnapshot) -> bool:
        """True if entries of a state have a part with an unknown serializer."""
        parts = state.serializers.values()
        if state.kind is BackendStateType.KEY_VALUE and (self.key_serializer is None or self.key_serializer.is_opaque):
            return True
        return any(part.is_opaque for part in parts)

    def opaque_class(self, state: StateMetaInfoSnapshot) -> str:
        """Name of the first unknown serializer of a state."""
        parts = [*state.serializers.values(), *([] if self.key_serializer is None else [self.key_serializer])]
        return next((str(part) for part in parts if part.is_opaque), "of the keys")


@dataclass(frozen=True, slots=True)
class OperatorHeader:
    """Header of an operator stream (`OperatorBackendSerializationProxy`).

    Args:
        compressed: True if the data is compressed.
        list_states: states with one element per offset.
        broadcast_states: states with keys and values.
        unknown: error of the first unknown serializer; its state and all later ones are missing.
    """

    compressed: bool
    list_states: tuple[StateMetaInfoSnapshot, ...]
    broadcast_states: tuple[StateMetaInfoSnapshot, ...]
    unknown: UnknownSerializerError | None = None


def read_keyed_header(data: StreamInput) -> KeyedHeader:
    """Read the header of a keyed stream, which ends with the data.

    Raises:
        StateStreamFormatError: malformed header.
    """
    try:
        return _read_keyed_header(data)
    except RecursionError:
        data.fail("serializers", "serializers nest too deep")


def _read_keyed_header(data: StreamInput) -> KeyedHeader:
    at = data.position
    if (version := data.i32("version")) != _KEYED_VERSION:
        data.fail("version", f"unknown keyed stream version {version}; 6 (Flink 1.8 and later) is supported", at)
    compressed = data.boolean("compressed")
    states: list[StateMetaInfoSnapshot] = []
    key_serializer = None
    count = None
    start = data.mark()
    try:
        key_serializer = read_serializer(data, "key_serializer")
        count = _count_of_states(data, "states")
        _read_states(data, "states", count, _KEYED, states)
    except UnknownSerializerError as unknown:
        if data.position - start + data.remaining > _MAX_RECOVERED:
            return KeyedHeader(compressed, key_serializer, tuple(states), unknown, is_complete=False, count=count)
        data.skip_to_end("states")
        if (found := _recovered(data.since(start))) is None:
            return KeyedHeader(compressed, key_serializer, tuple(states), unknown, is_complete=False, count=count)
        return KeyedHeader(compressed, *found, unknown, count=len(found[1]))
    return KeyedHeader(compressed, key_serializer, tuple(states), count=count)


@lru_cache(maxsize=16)
def _recovered(content: bytes) -> tuple[Serializer, tuple[StateMetaInfoSnapshot, ...]] | None:
    """Key serializer and states of a header with unknown serializers; None if their ends cannot be found.

    The subtasks of an operator have the same header, so a search serves all of them.
    """

    def key(data: GuidedInput) -> tuple[Serializer, int]:
        return read_serializer(data, "key_serializer"), read_i16(data, "states")

    search = HeaderSearch(content, "header")
    greedy = search.greedy_items(key, _read_keyed_state)
    if greedy is not None and len({state.name for state in greedy[1]}) == len(greedy[1]):
        return greedy[0], tuple(greedy[1])
    search = HeaderSearch(content, "header")
    for max_unknown in range(1, MAX_UNKNOWN + 1):
        for (serializer, count), position, unknown_left in search.possibilities(key, 0, max_unknown):
            states = search.sequence([_read_keyed_state] * count, position, unknown_left)
            if states is not None and len({state.name for state in states}) == max(0, count):
                return serializer, tuple(states)
    return None


def _read_keyed_state(data: StreamInput) -> StateMetaInfoSnapshot:
    state = _read_state(data)
    _check_state(data, state, "states", _KEYED, data.position)
    return state


def read_operator_header(data: StreamInput) -> OperatorHeader:
    """Read the header of an operator stream, up to the first unknown serializer.

    Raises:
        StateStreamFormatError: malformed header.
    """
    at = data.position
    version = data.i32("version")
    if version not in (_OPERATOR_VERSION_WITHOUT_COMPRESSION, _OPERATOR_VERSION):
        data.fail(
            "version", f"unknown operator stream version {version}; 5 and 6 (Flink 1.8 and later) are supported", at
        )
    compressed = version == _OPERATOR_VERSION and data.boolean("compressed")
    list_states: list[StateMetaInfoSnapshot] = []
    broadcast_states: list[StateMetaInfoSnapshot] = []
    unknown = None
    try:
        for field, kind, states in (
            ("list_states", BackendStateType.OPERATOR, list_states),
            ("broadcast_states", BackendStateType.BROADCAST, broadcast_states),
        ):
            _read_states(data, field, _count_of_states(data, field), (kind,), states)
    except UnknownSerializerError as error:
        unknown = error
    return OperatorHeader(compressed, tuple(list_states), tuple(broadcast_states), unknown)


def _count_of_states(data: StreamInput, field: str) -> int:
    at = data.position
    if (count := read_i16(data, field)) < 0:
        data.fail(field, f"negative count {count}", at)
    return count


def _read_states(
    data: StreamInput,
    field: str,
    count: int,
    kinds: tuple[BackendStateType, ...],
    states: list[StateMetaInfoSnapshot],
) -> None:
    """Append states to a list, so that the caller has those before an unknown serializer."""
    for index in range(count):
        data.enter(field, index)
        at = data.position
        state = _read_state(data)
        _check_state(data, state, field, kinds, at)
        if any(state.name == other.name for other in states):
            data.fail("name", f"a second state named {state.name!r}", at)
        data.leave()
        states.append(state)


def _check_state(
    data: StreamInput, state: StateMetaInfoSnapshot, field: str, kinds: tuple[BackendStateType, ...], at: int
) -> None:
    if state.kind not in kinds:
        data.fail("kind", f"a state of kind {state.kind.name} among {field}", at)
    if set(state.serializers) != _SERIALIZERS_OF[state.kind]:
        found = ", ".join(sorted(state.serializers)) or "none"
        data.fail("serializers", f"a state of kind {state.kind.name} with the serializers {found}", at)


def _read_state(data: StreamInput) -> StateMetaInfoSnapshot:
    name = data.utf("name")
    at = data.position
    ordinal = data.i32("kind")
    if ordinal == _KEY_VALUE_V2:
        raise UnsupportedStateKindError(data.path, at, data.where("kind"), name)
    if ordinal not in _KINDS:
        data.fail("kind", f"unknown kind {ordinal}", at)
    options = {data.utf("options"): data.utf("options") for _ in range(data.count("options", _MIN_OPTION))}
    serializers = {}
    for _ in range(data.count("serializers", _MIN_SERIALIZER)):
        key = data.utf("serializers")
        serializers[key] = read_serializer(data, f"serializers[{key}]")
    return StateMetaInfoSnapshot(name, _KINDS[ordinal], options, serializers)


_KINDS = {kind.value: kind for kind in BackendStateType}
_KEY_VALUE_V2 = 4
"""Ordinal of states of the asynchronous API of Flink 2.x (`BackendStateType.KEY_VALUE_V2`)."""
