"""Entries of a state: bytes of their parts, with values for known serializers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.flink.streams.assignment import key_group_of
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.values import Timer, Value


class Part(Enum):
    """Kind of a part of an entry."""

    KEY = "key"
    NAMESPACE = "namespace"
    MAP_KEY = "map key"
    VALUE = "value"
    ELEMENT = "element"
    COMPOSITE_KEY = "composite key"
    """Key, namespace and map key (or element) of a full snapshot, not separated because the serializers are unknown."""


@dataclass(frozen=True, slots=True)
class Datum:
    """One part of an entry.

    Args:
        raw: bytes in the stream, decompressed.
        value: decoded value; also None for an unknown serializer.
        known: True if the serializer is known.
    """

    raw: bytes
    value: Value = None
    known: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a state.

    Args:
        state: id of the state, which is its position in the header of the stream.
        parts: parts in the order of the stream.
    """

    state: int
    parts: Mapping[Part, Datum]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(len(datum.raw) for datum in self.parts.values())


@dataclass(frozen=True, slots=True)
class KeyChecker:
    """Checker of keys against the key group that contains them.

    Args:
        key_serializer: serializer of the keys. Without a known hash, the check passes.
        key_group: key group that contains the keys.
        max_parallelism: number of key groups.
    """

    key_serializer: Serializer
    key_group: int
    max_parallelism: int

    def check(self, data: StreamInput, key: Value, at: int) -> None:
        """Check a key.

        Raises:
            StateStreamFormatError: the key belongs to another key group.
        """
        hash_code = self.key_serializer.hash_code(key)
        if hash_code is None or (actual := key_group_of(hash_code, self.max_parallelism)) == self.key_group:
            return
        data.fail("key", f"the key {key!r} belongs to key group {actual}, not {self.key_group}", at)


def read_datum(data: StreamInput, serializer: Serializer, field: str) -> Datum:
    """Read a value and its bytes, which must start at or after the last mark."""
    at = data.position
    value = serializer.read(data, field)
    return Datum(data.since(at), value)


def read_element(data: StreamInput, serializer: Serializer, checker: KeyChecker) -> dict[Part, Datum]:
    """Read an element of a queue, and check the key of a timer."""
    at = data.position
    element = read_datum(data, serializer, "element")
    if isinstance(element.value, Timer):
        checker.check(data, element.value.key, at)
    return {Part.ELEMENT: element}


def read_key(data: StreamInput, checker: KeyChecker) -> Datum:
    """Read a key, and check it."""
    at = data.position
    key = read_datum(data, checker.key_serializer, "key")
    checker.check(data, key.value, at)
    return key
