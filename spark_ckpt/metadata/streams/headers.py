"""Headers of keyed streams and operator streams: the states they hold and their serializers.

keyed       i32 6, bool compressed, SER key serializer, i16 n, META of each      `KeyedBackendSerializationProxy`
operator    i32 5 or 6, in 6 bool compressed, then for list states and again for broadcast states
            i16 n, META of each                                               `OperatorBackendSerializationProxy`
META        utf name, i32 kind, options, serializers                      `StateMetaInfoSnapshotReadersWriters`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.metadata.streams.errors import UnknownSerializerError
from spark_ckpt.metadata.streams.serializers import Serializer, read_serializer
from spark_ckpt.metadata.streams.stream_input import StreamInput
from spark_ckpt.metadata.streams.values import read_i16

_KEYED_VERSION = 6
_OPERATOR_VERSION, _OPERATOR_VERSION_WITHOUT_COMPRESSION = 6, 5
_LEAST_OPTION = 2 + 2
_LEAST_SERIALIZER = 2 + 4 + 2 + 4

NAMESPACE_SERIALIZER, KEY_SERIALIZER, VALUE_SERIALIZER = "NAMESPACE_SERIALIZER", "KEY_SERIALIZER", "VALUE_SERIALIZER"
"""Names of the serializers of a state (`StateMetaInfoSnapshot.CommonSerializerKeys`)."""


class BackendStateType(Enum):
    """Kind of state (`StateMetaInfoSnapshot.BackendStateType`); the value is Flink's ordinal."""

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


@dataclass(frozen=True, slots=True)
class StateMetaInfoSnapshot:
    """One state of a stream (`metainfo.StateMetaInfoSnapshot`).

    Args:
        name: its name, unique in the stream.
        kind: what kind of state it is.
        options: such as `KEYED_STATE_TYPE`: `VALUE`, `LIST`, `REDUCING`, `AGGREGATING` or `MAP`.
        serializers: those that a state of its kind has, by their names above.
    """

    name: str
    kind: BackendStateType
    options: Mapping[str, str]
    serializers: Mapping[str, Serializer]

    @property
    def namespace_serializer(self) -> Serializer:
        """The serializer of the namespaces of a `KEY_VALUE` state."""
        return self.serializers[NAMESPACE_SERIALIZER]

    @property
    def key_serializer(self) -> Serializer:
        """The serializer of the keys of a `BROADCAST` state."""
        return self.serializers[KEY_SERIALIZER]

    @property
    def value_serializer(self) -> Serializer:
        """The serializer of the values or elements."""
        return self.serializers[VALUE_SERIALIZER]

    @property
    def keyed_state_type(self) -> str | None:
        """The option `KEYED_STATE_TYPE`."""
        return self.options.get("KEYED_STATE_TYPE")


@dataclass(frozen=True, slots=True)
class KeyedHeader:
    """The header of a keyed stream (`KeyedBackendSerializationProxy`).

    Args:
        compressed: whether the key groups are compressed.
        key_serializer: of the keys of all states; None if it is not known.
        states: by their id, which is their position.
        unknown: the first serializer that is not known. States from there on are missing then.
    """

    compressed: bool
    key_serializer: Serializer | None
    states: tuple[StateMetaInfoSnapshot, ...]
    unknown: UnknownSerializerError | None = None


@dataclass(frozen=True, slots=True)
class OperatorHeader:
    """The header of an operator stream (`OperatorBackendSerializationProxy`).

    Args:
        compressed: whether the data is compressed.
        list_states: states with one element per offset.
        broadcast_states: states with keys and values.
        unknown: the first serializer that is not known. States from there on are missing then.
    """

    compressed: bool
    list_states: tuple[StateMetaInfoSnapshot, ...]
    broadcast_states: tuple[StateMetaInfoSnapshot, ...]
    unknown: UnknownSerializerError | None = None


def read_keyed_header(data: StreamInput) -> KeyedHeader:
    """Reads the header of a keyed stream, or what can be read of it.

    Raises:
        StateStreamFormatError: the bytes are no header.
    """
    at = data.position
    if (version := data.i32("version")) != _KEYED_VERSION:
        data.fail("version", f"version {version} of a keyed stream; 6 (Flink 1.8 and later) is known", at)
    compressed = data.boolean("compressed")
    states: list[StateMetaInfoSnapshot] = []
    key_serializer = unknown = None
    try:
        key_serializer = read_serializer(data, "key_serializer")
        _read_states(data, "states", (BackendStateType.KEY_VALUE, BackendStateType.PRIORITY_QUEUE), states)
    except UnknownSerializerError as error:
        unknown = error
    return KeyedHeader(compressed, key_serializer, tuple(states), unknown)


def read_operator_header(data: StreamInput) -> OperatorHeader:
    """Reads the header of an operator stream, or what can be read of it.

    Raises:
        StateStreamFormatError: the bytes are no header.
    """
    at = data.position
    version = data.i32("version")
    if version not in (_OPERATOR_VERSION_WITHOUT_COMPRESSION, _OPERATOR_VERSION):
        data.fail("version", f"version {version} of an operator stream; 5 and 6 (Flink 1.8 and later) are known", at)
    compressed = version == _OPERATOR_VERSION and data.boolean("compressed")
    list_states: list[StateMetaInfoSnapshot] = []
    broadcast_states: list[StateMetaInfoSnapshot] = []
    unknown = None
    try:
        _read_states(data, "list_states", (BackendStateType.OPERATOR,), list_states)
        _read_states(data, "broadcast_states", (BackendStateType.BROADCAST,), broadcast_states)
    except UnknownSerializerError as error:
        unknown = error
    return OperatorHeader(compressed, tuple(list_states), tuple(broadcast_states), unknown)


def _read_states(
    data: StreamInput, field: str, kinds: tuple[BackendStateType, ...], states: list[StateMetaInfoSnapshot]
) -> None:
    """Adds the states to a list, so that those before an unknown serializer are there when it is met."""
    at = data.position
    if (count := read_i16(data, field)) < 0:
        data.fail(field, f"negative count {count}", at)
    for index in range(count):
        data.enter(field, index)
        at = data.mark()
        state = _read_state(data)
        if state.kind not in kinds:
            data.fail("kind", f"a state of kind {state.kind.name} among {field}", at)
        if set(state.serializers) != _SERIALIZERS_OF[state.kind]:
            found = ", ".join(sorted(state.serializers)) or "none"
            data.fail("serializers", f"a state of kind {state.kind.name} with the serializers {found}", at)
        if any(state.name == other.name for other in states):
            data.fail("name", f"a second state of the name {state.name!r}", at)
        data.leave()
        states.append(state)


def _read_state(data: StreamInput) -> StateMetaInfoSnapshot:
    name = data.utf("name")
    at = data.position
    ordinal = data.i32("kind")
    if ordinal not in _KINDS:
        data.fail("kind", f"unknown kind {ordinal}", at)
    options = {data.utf("options"): data.utf("options") for _ in range(data.count("options", _LEAST_OPTION))}
    serializers = {}
    for _ in range(data.count("serializers", _LEAST_SERIALIZER)):
        key = data.utf("serializers")
        serializers[key] = read_serializer(data, f"serializers[{key}]")
    return StateMetaInfoSnapshot(name, _KINDS[ordinal], options, serializers)


_KINDS = {kind.value: kind for kind in BackendStateType}
