"""Checksums of RocksDB's blocks and log records (`ChecksumType` in `table.h`, `util/crc32c.h`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

import google_crc32c

from spark_ckpt.errors import SparkCkptError

NONE, CRC32C, XXH32, XXH64, XXH3 = range(5)
"""Checksum types of a table's footer."""

_LAST_BYTE_PRIME = 0x6B9083D9
"""Factor of the last byte in checksums of type XXH3 (`ModifyChecksumForLastByte` in `format.cc`)."""


class ChecksumUnavailableError(SparkCkptError, ImportError):
    """The files have checksums whose library is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "RocksDB's files of Flink 2.x have XXH3 checksums, and the package xxhash is not installed: "
            "pip install 'spark-ckpt[flink]'"
        )


def masked_crc32c(content: bytes) -> int:
    """CRC-32C as RocksDB stores it: rotated, so that a checksum of bytes with a checksum in them is no constant."""
    found = google_crc32c.value(content)
    return int(((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def checksum_of(kind: int, content: bytes, compression: int) -> int:
    """Checksum of a block and of the byte behind it, which names its compression.

    Raises:
        KeyError: unknown type of checksum.
        ChecksumUnavailableError: the package `xxhash` is not installed.
    """
    return _BY_KIND[kind](content, compression)


def _crc32c(content: bytes, last: int) -> int:
    return masked_crc32c(content + bytes((last,)))


def _xxh32(content: bytes, last: int) -> int:
    return int(_xxhash().xxh32_intdigest(content + bytes((last,))))


def _xxh64(content: bytes, last: int) -> int:
    return int(_xxhash().xxh64_intdigest(content + bytes((last,)))) & 0xFFFFFFFF


def _xxh3(content: bytes, last: int) -> int:
    return (int(_xxhash().xxh3_64_intdigest(content)) ^ (last * _LAST_BYTE_PRIME)) & 0xFFFFFFFF


_BY_KIND: Mapping[int, Callable[[bytes, int], int]] = {CRC32C: _crc32c, XXH32: _xxh32, XXH64: _xxh64, XXH3: _xxh3}


def _xxhash() -> ModuleType:
    try:
        import xxhash
    except ImportError as e:
        raise ChecksumUnavailableError from e
    return xxhash
