"""Headers with unknown serializers of real Flink, in every place."""

from __future__ import annotations

import struct

import pytest

from spark_ckpt.flink.streams.headers import KeyedHeader, read_keyed_header
from spark_ckpt.flink.streams.serializers import write_serializer
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.flink.streams.types.base import Serializer
from spark_ckpt.flink.streams.types.composites import ListSerializer, MapSerializer, TtlSerializer
from spark_ckpt.flink.streams.types.opaque import OpaqueSerializer
from spark_ckpt.flink.streams.types.primitives import LONG, VOID_NAMESPACE
from spark_ckpt.flink.streams.types.text import STRING
from spark_ckpt.metadata.data_output import DataOutput
from tests.flink.streams.types.flink_serializers import flink_serializers


def unknown(name: str) -> Serializer:
    """An unknown serializer of the dump."""
    flink = flink_serializers()[name]
    return OpaqueSerializer(flink.class_name, flink.snapshot[2 + len(flink.class_name) :])


KRYO, DISTINCT = unknown("kryo"), unknown("type DISTINCT")


def header(key: Serializer, *states: tuple[str, Serializer]) -> bytes:
    out = DataOutput()
    out.i32(6, "version")
    out.i8(False, "compressed")
    write_serializer(key, out, "key")
    out.raw(struct.pack(">h", len(states)))
    for name, value in states:
        out.utf(name, "name")
        out.i32(0, "kind")
        out.i32(1, "options")
        out.utf("KEYED_STATE_TYPE", "options")
        out.utf("VALUE", "options")
        out.i32(2, "serializers")
        # In the order of Flink, which is that of a hash map.
        for part, serializer in (("VALUE_SERIALIZER", value), ("NAMESPACE_SERIALIZER", VOID_NAMESPACE)):
            out.utf(part, "serializers")
            write_serializer(serializer, out, part)
    return out.getvalue()


def read(content: bytes) -> KeyedHeader:
    pieces = (content[at : at + 100] for at in range(0, len(content), 100))
    return read_keyed_header(StreamInput(pieces, "header", 0, len(content)))


CASES = {
    "value": (LONG, (("a", LONG), ("b", KRYO), ("c", STRING))),
    "last": (LONG, (("a", LONG), ("b", KRYO))),
    "first": (LONG, (("b", KRYO), ("c", STRING), ("d", LONG))),
    "key": (KRYO, (("a", LONG), ("b", STRING))),
    "key and value": (KRYO, (("a", LONG), ("b", KRYO))),
    "in a list": (LONG, (("a", ListSerializer((KRYO,))), ("b", STRING))),
    "in a map": (LONG, (("a", MapSerializer((KRYO, LONG))), ("b", MapSerializer((LONG, KRYO))))),
    "in a state with a time to live": (LONG, (("a", TtlSerializer((LONG, KRYO))), ("b", LONG))),
    "logical type": (LONG, (("a", DISTINCT), ("b", STRING))),
    "very many": (LONG, tuple((f"s{number}", (KRYO, DISTINCT, LONG, STRING)[number % 4]) for number in range(60))),
    "in each of many": (LONG, tuple((f"s{number}", MapSerializer((KRYO, DISTINCT))) for number in range(12))),
    "several": (LONG, (("a", KRYO), ("b", DISTINCT), ("c", KRYO), ("d", LONG))),
}


@pytest.mark.parametrize("name", CASES)
def test_states_behind_unknown_serializers_are_found(name: str) -> None:
    key, states = CASES[name]
    found = read(header(key, *states))
    assert found.unknown is not None
    assert found.is_complete
    assert str(found.key_serializer) == str(key)
    assert [(state.name, str(state.value_serializer)) for state in found.states] == [(n, str(s)) for n, s in states]
    assert [state.value_serializer.is_opaque for state in found.states] == [value.is_opaque for _, value in states]


def test_the_class_of_kryo_is_named() -> None:
    assert str(KRYO) == "Kryo<java.util.UUID>"


def test_a_header_that_is_cut_off_has_the_states_before() -> None:
    key, states = CASES["value"]
    content = header(key, *states)
    for length in range(len(content) - 200, len(content), 23):
        found = read(content[:length])
        assert (found.is_complete, [state.name for state in found.states][:1]) == (False, ["a"])


def test_the_number_of_states_is_known_without_their_names() -> None:
    key, states = CASES["value"]
    found = read(header(key, *states)[:-30])
    assert (found.is_complete, found.count, len(found.states)) == (False, len(states), 1)


def test_a_hostile_header_is_searched_in_bounds() -> None:
    """Bytes that look like states, names and classes everywhere."""
    class_name = b"\0\x09a.b.c.d.e\0\0\0\1"
    for filler in (bytes(50_000), b"\0\1 " * 20_000, class_name * 5_000, b"  " * 50_000):
        content = header(LONG, ("a", KRYO), ("b", STRING))
        found = read(content[:-200] + filler + content[-200:])
        assert [state.name for state in found.states] in ([], ["a"], ["a", "b"])


def test_known_headers_are_read_without_a_search() -> None:
    found = read(header(LONG, ("a", LONG)))
    assert (found.unknown, found.is_complete, len(found.states)) == (None, True, 1)
