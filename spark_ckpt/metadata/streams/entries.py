"""Entries of a state: the bytes of their parts, and the values where their serializers are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.metadata.streams.assignment import key_group_of
from spark_ckpt.metadata.streams.serializers import Serializer
from spark_ckpt.metadata.streams.stream_input import StreamInput
from spark_ckpt.metadata.streams.values import Timer, Value


class Part(Enum):
    """Kind of a part of an entry."""

    KEY = "key"
    NAMESPACE = "namespace"
    MAP_KEY = "map key"
    VALUE = "value"
    ELEMENT = "element"
    COMPOSITE_KEY = "composite key"
    """Key, namespace and map key of a full snapshot, or its element, where the serializers do not tell them apart."""


@dataclass(frozen=True, slots=True)
class Datum:
    """One part of an entry.

    Args:
        raw: its bytes in the stream, decompressed.
        value: what they stand for; None as well where the serializer is not known.
        known: whether the serializer is known.
    """

    raw: bytes
    value: Value = None
    known: bool = True


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a state.

    Args:
        state: id of the state, its position in the header of the stream.
        parts: in the order of the stream.
    """

    state: int
    parts: Mapping[Part, Datum]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(len(datum.raw) for datum in self.parts.values())


@dataclass(frozen=True, slots=True)
class KeyChecker:
    """Compares keys with the key group in which they are found.

    Args:
        key_serializer: of the keys; of some the hash is known.
        key_group: where they are found.
        max_parallelism: number of key groups.
    """

    key_serializer: Serializer
    key_group: int
    max_parallelism: int

    def check(self, data: StreamInput, key: Value, at: int) -> None:
        """Compares a key.

        Raises:
            StateStreamFormatError: the key belongs elsewhere.
        """
        hash_code = self.key_serializer.hash_code(key)
        if hash_code is None or (actual := key_group_of(hash_code, self.max_parallelism)) == self.key_group:
            return
        data.fail("key", f"the key {key!r} belongs to key group {actual}, not {self.key_group}", at)


def read_datum(data: StreamInput, serializer: Serializer, field: str) -> Datum:
    """Reads a value with its bytes, all since the last mark."""
    at = data.position
    value = serializer.read(data, field)
    return Datum(data.since(at), value)


def read_element(data: StreamInput, serializer: Serializer, checker: KeyChecker) -> dict[Part, Datum]:
    """Reads an element of a queue; that of a timer queue has a key."""
    at = data.position
    element = read_datum(data, serializer, "element")
    if isinstance(element.value, Timer):
        checker.check(data, element.value.key, at)
    return {Part.ELEMENT: element}


def read_key(data: StreamInput, checker: KeyChecker) -> Datum:
    """Reads a key."""
    at = data.position
    key = read_datum(data, checker.key_serializer, "key")
    checker.check(data, key.value, at)
    return key
