from __future__ import annotations

import random
import struct
from typing import Any

import google_crc32c
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.segments import (
    Block,
    Section,
    SegmentKind,
    check_block,
    decode_block,
)
from tests.support.segments import CODECS, encode_block, encode_segment

APPENDED = (
    "434b424701020000000000020000000000000002000000010000003c01d3968f00056c697374730f0000000100000008"
    "0000002002000000000000090000000800000000000000040000001000000000000000050000000000000006"
)

rows = st.binary(max_size=40)
codecs = st.sampled_from([0, *CODECS])
chunks = st.sampled_from([0, 10, 14])
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@st.composite
def sections(draw: st.DrawFn, kind: SegmentKind) -> Section:
    lists = draw(st.booleans())
    value = st.lists(rows, max_size=4).map(tuple) if lists else rows
    appends = lists and kind is SegmentKind.DELTA and draw(st.booleans())
    values = value if kind is SegmentKind.BASE or appends else st.none() | value
    entries: dict[bytes, Any] = draw(st.dictionaries(rows, values, min_size=1, max_size=6))
    return Section(tuple(entries.items()), draw(names), lists, appends)


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    kind = draw(st.sampled_from(SegmentKind))
    version = draw(st.integers(0, 2**63 - 1))
    return Block(kind, draw(st.integers(0, 32767)), version, tuple(draw(st.lists(sections(kind), max_size=3))))


@given(blocks(), codecs, chunks, st.binary(max_size=20), st.binary(max_size=20))
def test_a_block_is_read_as_it_was_written(block: Block, codec: int, chunk: int, before: bytes, after: bytes) -> None:
    encoded = encode_block(block, codec, chunk if codec else 0)
    assert decode_block(before + encoded + after, len(before), "file") == block


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("values", [0, 100, 1000, 1024, 5000])
def test_bodies_of_many_chunks_are_read(codec: int, values: int) -> None:
    """Chunks that became smaller by the codec, and others."""
    entries = tuple((i.to_bytes(8, "big"), random.Random(i).randbytes(8 * (i % 7))) for i in range(values))
    block = Block(SegmentKind.BASE, 7, 42, (Section((*entries, (b"zeros", bytes(5000)))),))
    encoded = encode_block(block, codec, chunk_bits=10)
    assert check_block(encoded, 0, "file").chunk_bits == 10
    assert decode_block(encoded, 0, "file") == block


def test_the_layout_is_the_documented_one() -> None:
    block = Block(SegmentKind.DELTA, 7, 42, (Section(((b"ab", b"xyz"), (b"cd", None)), "cf"),))
    body = struct.pack(">H", 2) + b"cf" + bytes([2]) + struct.pack(">iiii", 2, 2, 3, -1) + b"abcd" + b"xyz"
    start = struct.pack(">iBBBBiqii", 0x434B4247, 1, 2, 0, 0, 7, 42, 1, len(body))
    assert encode_block(block) == start + struct.pack(">I", google_crc32c.value(start + body)) + body


def test_the_layout_of_appended_rows_is_the_documented_one() -> None:
    """Layout with the same bytes as in `SegmentSuite` of the shim."""
    key, rows = struct.pack(">q", 2 << 56 | 9), (struct.pack(">q", 4), struct.pack(">qq", 5, 6))
    block = Block(SegmentKind.DELTA, 2, 2, (Section(((key, rows),), "lists", lists=True, appends=True),))
    encoded = encode_block(block)
    body = struct.pack(">H5sBiii", 5, b"lists", 15, 1, 8, 32) + key + struct.pack(">iqiqq", 8, 4, 16, 5, 6)
    assert encoded[32:] == body
    assert encoded.hex() == APPENDED
    assert decode_block(bytes.fromhex(APPENDED), 0, "file") == block


def test_the_checksum_is_crc32c() -> None:
    assert google_crc32c.value(b"123456789") == 0xE3069283


def test_a_segment_has_a_block_for_each_key_group_that_has_entries() -> None:
    entries = Section(((b"k", b"v"),))
    segment = encode_segment(SegmentKind.BASE, 3, {9: [entries], 2: [entries, entries], 5: []})
    assert segment.key_groups.tolist() == [2, 9]
    assert segment.rows == 3
    found = [decode_block(segment.data, offset, "file") for offset in segment.offsets.tolist()]
    assert [block.key_group for block in found] == [2, 9]
    second = check_block(segment.data, 0, "file").length
    assert segment.offsets.tolist() == [0, second]
    assert second + check_block(segment.data, second, "file").length == len(segment.data)


@given(blocks(), codecs, chunks, st.data())
def test_no_damage_goes_unnoticed(block: Block, codec: int, chunk: int, data: st.DataObject) -> None:
    encoded = bytearray(encode_block(block, codec, chunk if codec else 0))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SegmentError) as caught:
        decode_block(bytes(encoded), 0, "shared/x", start=1000)
    assert caught.value.path == "shared/x"
    assert 1000 <= caught.value.offset <= 1000 + len(encoded)


@given(blocks(), st.data())
def test_a_block_that_is_cut_off_is_a_typed_error(block: Block, data: st.DataObject) -> None:
    encoded = encode_block(block)
    with pytest.raises(SegmentError, match="shared/x"):
        decode_block(encoded[: data.draw(st.integers(0, len(encoded) - 1))], 0, "shared/x")


def _with_checksum(start: bytes, body: bytes) -> bytes:
    return start + struct.pack(">I", google_crc32c.value(start + body)) + body


def _block(body: bytes, *, kind: int = 1, codec: int = 0, chunk: int = 0, sections: int = 1, fmt: int = 1) -> bytes:
    start = struct.pack(">iBBBBiqii", 0x434B4247, fmt, kind, codec, chunk, 7, 42, sections, len(body))
    return _with_checksum(start, body)


GOOD_BODY = b"\0\0" + bytes([6]) + struct.pack(">iii", 1, 1, 1) + b"kv"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (_block(GOOD_BODY, kind=3), "kind 3"),
        (_block(GOOD_BODY, codec=3), "codec 3"),
        (_block(GOOD_BODY, codec=1), "cannot be decompressed"),
        (_block(b"", codec=2), "cannot be decompressed"),
        (_block(struct.pack(">i", -1) + b"abc", codec=2), "a length of -1 bytes"),
        (_block(struct.pack(">i", 9) + pa.compress(b"12345678", codec="zstd", asbytes=True), codec=2), "decompressed"),
        (
            _block(struct.pack(">i", 7) + pa.compress(b"12345678", codec="lz4_raw", asbytes=True), codec=1),
            "decompressed",
        ),
        (_block(GOOD_BODY, chunk=14), "chunks of 2\\^14 bytes in a block with codec 0"),
        (_block(GOOD_BODY, codec=1, chunk=9), "chunks of 2\\^9 bytes in a block with codec 1"),
        (_block(GOOD_BODY, codec=1, chunk=25), "chunks of 2\\^25 bytes in a block with codec 1"),
        (_block(struct.pack(">i", 3000) + b"abc", codec=1, chunk=10), "cannot be decompressed"),
        (_block(struct.pack(">iii", 2000, 1, 2) + b"ab", codec=1, chunk=10), "chunks end at 15 of 14"),
        (_block(struct.pack(">iii", 2000, 0, 2) + b"ab", codec=1, chunk=10), "one has no bytes"),
        (_block(struct.pack(">iii", 2000, 3, 976) + b"abc" + bytes(976), codec=1, chunk=10), "cannot be decompressed"),
        (_block(GOOD_BODY, fmt=2), "format version 2"),
        (_block(GOOD_BODY, sections=2), "cut off"),
        (_block(GOOD_BODY + b"!"), "1 bytes after the last section"),
        (_block(b"\0\0" + bytes([16]) + GOOD_BODY[3:]), "flags 0x10"),
        (_block(b"\0\0" + bytes([8]) + GOOD_BODY[3:], kind=2), "to a single value"),
        (_block(b"\0\0" + bytes([9]) + GOOD_BODY[3:]), "in a base"),
        (_block(b"\0\0" + bytes([6]) + struct.pack(">iii", -1, 1, 1)), "-1 entries"),
        (_block(b"\0\0" + bytes([6]) + struct.pack(">iii", 1, 1, -1) + b"k"), "negative length -1"),
        (_block(b"\0\0" + bytes([7]) + struct.pack(">iii", 1, 1, 8) + b"k" + struct.pack(">ii", 1, 99)), "row of 99"),
        (_block(b"\0\0" + bytes([7]) + struct.pack(">iii", 1, 1, 5) + b"k" + struct.pack(">i", 0) + b"!"), "row of -1"),
        (_block(b"\0\0" + bytes([7]) + struct.pack(">iii", 1, 1, 4) + b"k" + struct.pack(">i", 1)), "holds 0"),
        (_block(b"\0\0" + bytes([15]) + struct.pack(">iii", 1, 1, -1) + b"k", kind=2), "negative length -1"),
    ],
)
def test_bytes_with_a_good_checksum_that_make_no_sense_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SegmentError, match=reason):
        decode_block(data, 0, "shared/x")


def test_checking_a_block_tells_its_length() -> None:
    data = encode_block(Block(SegmentKind.BASE, 1, 2, ()))
    assert check_block(data, 0, "file").length == len(data) == 32
