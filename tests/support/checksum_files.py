"""Checksum files as Hadoop's `ChecksumFs` writes them."""

from __future__ import annotations

import struct
import zlib

CHUNK = 512


def checksums_of(content: bytes) -> bytes:
    """Content of the checksum file of a file."""
    sums = [zlib.crc32(content[start : start + CHUNK]) for start in range(0, len(content), CHUNK)]
    return b"crc\0" + struct.pack(f">i{len(sums)}I", CHUNK, *sums)
