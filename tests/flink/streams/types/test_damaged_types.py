"""Damaged snapshots and values of each serializer of real Flink: read, or refused with the position."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

import pytest

from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.streams.serializers import read_serializer
from spark_ckpt.flink.streams.stream_input import StreamInput
from tests.flink.streams.types.flink_serializers import BINARY_ROW, IN_PYTHON, READ_ONLY, flink_serializers

VERSION = struct.pack(">i", 2)
SERIALIZERS = {name: serializer for name, (serializer, _) in (IN_PYTHON | READ_ONLY).items()} | {
    BINARY_ROW[1]: BINARY_ROW[0]
}
FLIPS = 40


def attempt(content: bytes, read: Callable[[StreamInput, str], object]) -> bool:
    """True if bytes are read; False if they are refused with a position within them."""
    refused = None
    try:
        read(StreamInput(iter([content]), "damaged", 0, len(content)), "value")
    except StateStreamFormatError as error:
        refused = error
    assert refused is None or (refused.path == "damaged" and 0 <= refused.offset <= len(content))
    return refused is None


def damages(rng: random.Random, content: bytes) -> list[bytes]:
    """The content, cut off anywhere, and with single changed bytes."""
    cut = sorted({0, *(rng.randrange(len(content)) for _ in range(FLIPS))}) if content else []
    changed = [bytearray(content) for _ in range(FLIPS if content else 0)]
    for each in changed:
        each[rng.randrange(len(each))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return [*(content[:end] for end in cut), *map(bytes, changed)]


@pytest.mark.parametrize("name", SERIALIZERS)
def test_damage_is_refused_with_a_position(name: str, rng: random.Random) -> None:
    flink = flink_serializers()[name]
    snapshot = VERSION + flink.snapshot
    assert attempt(snapshot, read_serializer)
    for content in damages(rng, snapshot):
        attempt(content, read_serializer)
    for value in flink.values:
        assert attempt(value.content, SERIALIZERS[name].read)
        for content in damages(rng, value.content):
            attempt(content, SERIALIZERS[name].read)
