"""Checksum files of Hadoop, compared with the content beside them."""

from __future__ import annotations

import random
import struct
import zlib

import pytest

from spark_ckpt.spark_files.checksums import ChecksumFile
from tests.support.checksum_files import checksums_of


def matches(content: bytes, checksums: bytes, rng: random.Random) -> bool:
    """Compares content that arrives in random pieces."""
    file, at = ChecksumFile(checksums), 0
    while at < len(content):
        length = rng.randrange(1, 900)
        file.update(content[at : at + length])
        at += length
    return file.matches()


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 5000])
def test_content_as_it_was_written_and_changed(size: int, rng: random.Random) -> None:
    content = rng.randbytes(size)
    sums = checksums_of(content)
    assert matches(content, sums, rng)
    assert not matches(content + b"x", sums, rng)
    if content:
        assert not matches(content[:-1], sums, rng)
        changed = bytearray(content)
        changed[rng.randrange(size)] ^= 1
        assert not matches(bytes(changed), sums, rng)


@pytest.mark.parametrize(
    "sums", [b"", b"crc\0", b"crc\0\0\0\2", b"xyz\0" + struct.pack(">iI", 512, 3), b"crc\0" + bytes(8)]
)
def test_a_file_that_is_none_tells_nothing(sums: bytes, rng: random.Random) -> None:
    assert matches(b"abc", sums, rng)


def test_the_layout(rng: random.Random) -> None:
    assert checksums_of(b"abc") == b"crc\0" + struct.pack(">iI", 512, zlib.crc32(b"abc"))
