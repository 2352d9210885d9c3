from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.flink.streams import Serializer, StateStreamFormatError, UnknownSerializerError, Value
from spark_ckpt.flink.streams.serializers import read_serializer
from tests.flink.streams.corpus import open_stream
from tests.flink.streams.serializer_snapshots import BASE, LIST, LONG, MAP, STRING, VOID, composite, simple, utf


def read(snapshot: bytes) -> Serializer:
    with open_stream(struct.pack(">i", 2) + snapshot) as stream:
        data = stream.input()
        serializer = read_serializer(data, "value_serializer")
        assert data.at_end()
    return serializer


def value(serializer: Serializer, content: bytes) -> Value:
    with open_stream(content) as stream:
        data = stream.input()
        found = serializer.read(data, "value")
        assert data.at_end()
    return found


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


def encoded_string(text: str) -> bytes:
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    written = [varint(unit) for (unit,) in units]
    return varint(len(written) + 1) + b"".join(written)


@pytest.mark.parametrize(
    ("snapshot", "name", "has_fixed_length"),
    [
        (simple(LONG), "Long", True),
        (utf(LONG) + struct.pack(">i", 2) + utf(f"{BASE}.LongSerializer"), "Long", True),
        (simple(STRING), "String", False),
        (composite(LIST, simple(LONG)), "List<Long>", False),
        (composite(MAP, simple(STRING), composite(LIST, simple(LONG))), "Map<String, List<Long>>", False),
    ],
    ids=str,
)
def test_snapshots(snapshot: bytes, name: str, has_fixed_length: bool) -> None:
    serializer = read(snapshot)
    assert str(serializer) == name
    assert serializer.has_fixed_length == has_fixed_length


def test_a_timer_is_as_long_as_its_parts() -> None:
    timer = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"
    assert read(composite(timer, simple(LONG), simple(VOID))).has_fixed_length
    assert not read(composite(timer, simple(STRING), simple(VOID))).has_fixed_length


def test_an_unknown_class_is_named_with_its_place() -> None:
    with pytest.raises(UnknownSerializerError) as unknown:
        read(composite(MAP, simple(LONG), simple("com.example.PojoSnapshot")))
    assert unknown.value.class_name == "com.example.PojoSnapshot"
    assert unknown.value.field == "value_serializer.nested[1].class_name"
    assert unknown.value.offset == 4 + len(utf(MAP)) + 24 + len(simple(LONG))
    assert "com.example.PojoSnapshot" in str(unknown.value)


@pytest.mark.parametrize(
    "snapshot",
    [
        utf(LONG) + struct.pack(">i", 4),
        composite(LIST, simple(LONG), magic=911109),
        composite(LIST, simple(LONG), version=2),
        composite(LIST),
        composite(LIST, simple(LONG), simple(LONG)),
        composite(LIST, simple(LONG))[:-1],
    ],
    ids=["simple version", "magic", "composite version", "too few", "too many", "cut off"],
)
def test_malformed_snapshots(snapshot: bytes) -> None:
    with pytest.raises(StateStreamFormatError, match="inline"):
        read(snapshot)


def test_the_depth_of_snapshots_is_bounded() -> None:
    snapshot = simple(LONG)
    for _ in range(100):
        snapshot = composite(LIST, snapshot)
    with pytest.raises(StateStreamFormatError, match="nest deeper"):
        read(snapshot)


@given(st.text(st.characters(codec=None)))
def test_strings(text: str) -> None:
    # In UTF-16, two adjacent lone surrogates are one character.
    text = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    assert value(read(simple(STRING)), encoded_string(text)) == text


def test_a_string_can_be_null() -> None:
    assert value(read(simple(STRING)), b"\0") is None


@pytest.mark.parametrize(
    "content",
    [b"\xff\xff\xff\xff\xff\x01", b"\x02\xff\xff\xff\x01", b"\x02\x80\x80\x04", b"\x05abc", b"\x03\xc3", b""],
    ids=["long length", "long unit", "unit of 17 bits", "cut off", "cut off in a unit", "nothing"],
)
def test_malformed_strings(content: bytes) -> None:
    with pytest.raises(StateStreamFormatError), open_stream(content) as stream:
        read(simple(STRING)).read(stream.input(), "value")


def test_maps_and_lists() -> None:
    serializer = read(composite(MAP, simple(STRING), composite(LIST, simple(LONG))))
    content = (
        struct.pack(">i", 2) + encoded_string("a") + b"\0" + struct.pack(">iqq", 2, 1, -1) + encoded_string("b") + b"\1"
    )
    assert value(serializer, content) == (("a", (1, -1)), ("b", None))


@pytest.mark.parametrize("count", [-1, 2**31 - 1])
def test_wild_counts_in_values(count: int) -> None:
    with pytest.raises(StateStreamFormatError, match="count"):
        value(read(composite(LIST, simple(LONG))), struct.pack(">iq", count, 1))


def test_a_void_namespace_is_zero() -> None:
    assert value(read(simple(VOID)), b"\0") is None
    with pytest.raises(StateStreamFormatError, match="VoidNamespace"):
        value(read(simple(VOID)), b"\1")
