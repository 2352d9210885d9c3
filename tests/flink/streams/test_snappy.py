from __future__ import annotations

import google_crc32c
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.flink.streams import StateStreamFormatError
from spark_ckpt.flink.streams.snappy import SnappyInput
from tests.flink.streams.corpus import open_stream

IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"


def chunk(kind: int, content: bytes) -> bytes:
    return bytes((kind,)) + len(content).to_bytes(3, "little") + content


def masked(content: bytes) -> bytes:
    crc = google_crc32c.value(content)
    return int(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def compressed(content: bytes) -> bytes:
    return chunk(0, masked(content) + bytes(pa.compress(content, codec="snappy", asbytes=True)))


def uncompressed(content: bytes) -> bytes:
    return chunk(1, masked(content) + content)


def decompress(content: bytes) -> bytes:
    with open_stream(content) as stream:
        data = SnappyInput(stream.input())
        read = bytearray()
        while not data.at_end():
            data.mark()
            read += data.raw(1, "byte")
    return bytes(read)


@given(st.lists(st.tuples(st.booleans(), st.binary(min_size=1, max_size=300))))
def test_chunks(parts: list[tuple[bool, bytes]]) -> None:
    content = IDENTIFIER + b"".join(compressed(part) if small else uncompressed(part) for small, part in parts)
    assert decompress(content) == b"".join(part for _, part in parts)


def test_streams_one_after_the_other() -> None:
    assert decompress(IDENTIFIER + compressed(b"first") + IDENTIFIER + uncompressed(b"!")) == b"first!"


def test_a_chunk_of_the_largest_size() -> None:
    assert decompress(IDENTIFIER + compressed(b"x" * 65536)) == b"x" * 65536


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (chunk(2, b"reserved"), "type 0x02"),
        (chunk(0x7F, b"reserved"), "type 0x7f"),
        (chunk(0x80, compressed(b"once compressed")[4:]), "type 0x80"),
        (chunk(0xFE, b"padding"), "type 0xfe"),
        (chunk(0xFF, b"sNaPpy"), "stream identifier"),
        (chunk(1, b"\0\0\0\0content"), "checksum"),
        (chunk(1, b"\0\0"), "checksum"),
        (chunk(0, b""), "0 bytes"),
        (chunk(0, masked(b"x") + b"\x01"), "cannot be decompressed"),
        (compressed(b"x" * 65537), "the maximum is 65536"),
        (chunk(0, masked(b"") + b"\xff\xff\xff\xff\x0f"), "the maximum is 65536"),
        (compressed(b"content")[:-1], "bytes needed"),
        (b"\0\0", "bytes needed"),
    ],
    ids=str,
)
def test_damage(content: bytes, reason: str) -> None:
    with pytest.raises(StateStreamFormatError, match=reason) as error:
        decompress(IDENTIFIER + content)
    assert error.value.offset >= len(IDENTIFIER)


def test_an_error_in_what_is_compressed_tells_where_the_chunk_is() -> None:
    content = IDENTIFIER + compressed(b"abc") + compressed(b"def")
    with open_stream(content) as stream:
        data = SnappyInput(stream.input())
        data.raw(4, "before")
        with pytest.raises(StateStreamFormatError, match=r"at byte 4 of the compressed data") as error:
            data.raw(3, "field")
    assert error.value.offset == len(content)
    assert error.value.field == "field"
