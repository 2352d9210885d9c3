"""Reading in pieces gives the same result as reading at once, and buffers no more than necessary."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.flink.streams import StateStreamFormatError
from spark_ckpt.flink.streams.stream_input import StreamInput
from tests.support.memory import traced_peak


def in_pieces(content: bytes, sizes: list[int]) -> Iterator[bytes]:
    at = 0
    for size in sizes:
        yield content[at : at + size]
        at += size
    yield content[at:]


@given(st.binary(max_size=200), st.lists(st.integers(0, 9)), st.lists(st.integers(0, 20)))
def test_pieces_of_any_size(content: bytes, sizes: list[int], lengths: list[int]) -> None:
    data = StreamInput(in_pieces(content, sizes), "file", 100)
    at = 0
    for length in lengths:
        if at + length > len(content):
            with pytest.raises(StateStreamFormatError) as error:
                data.raw(length, "field")
            assert error.value.offset == 100 + at
            return
        assert data.raw(length, "field") == content[at : at + length]
        at += length
        assert data.position == 100 + at
    assert data.at_end() == (at == len(content))


@given(st.binary(min_size=30, max_size=60), st.lists(st.integers(0, 9)), st.integers(0, 10), st.integers(0, 10))
def test_bytes_since_a_mark(content: bytes, sizes: list[int], before: int, after: int) -> None:
    data = StreamInput(in_pieces(content, sizes), "file")
    data.raw(before, "before")
    start = data.mark()
    data.raw(after, "after")
    middle = data.position
    data.raw(9, "rest")
    assert data.since(start) == content[before : before + after + 9]
    assert data.since(middle) == content[before + after : before + after + 9]


def test_nothing_is_read_beyond_the_end() -> None:
    asked: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number in range(3):
            asked.append(number)
            yield bytes(10)

    data = StreamInput(pieces(), "file", 0, 30)
    data.raw(10, "first")
    assert asked == [0]
    with pytest.raises(StateStreamFormatError, match="21 bytes needed, 20 left"):
        data.raw(21, "too much")
    assert asked == [0]


def test_a_count_is_compared_with_what_can_follow() -> None:
    data = StreamInput(iter([b"\x08\0\0\0" + bytes(16)]), "file", 10, 30)
    with pytest.raises(
        StateStreamFormatError, match=r"a count of 134217728, but only 16 bytes follow \(byte 10, number\)"
    ):
        data.count("number", 1)


def test_what_was_read_is_not_kept() -> None:
    piece = 1 << 16
    data = StreamInput((bytes(piece) for _ in range(400)), "file", 0, 400 * piece)

    def read() -> None:
        while not data.at_end():
            data.mark()
            data.raw(1000 if data.remaining > 1000 else data.remaining, "part")

    peak = traced_peak(read)
    assert data.position == 400 * piece
    assert peak < 8 * piece


def test_skipping_keeps_nothing_either() -> None:
    data = StreamInput((bytes([number]) * 1000 for number in range(100)), "file")
    data.skip(70_500, "offset")
    assert data.u8("value") == 70
    with pytest.raises(StateStreamFormatError):
        data.skip(29_500, "offset")
