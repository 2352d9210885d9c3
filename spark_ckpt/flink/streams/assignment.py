"""Key group of a key in Flink (`KeyGroupRangeAssignment`). spark-ckpt numbers its own key groups differently."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, unpack

_U32 = 0xFFFFFFFF
_WORD = Struct("<I")


def key_group_of(hash_code: int, max_parallelism: int) -> int:
    """Key group of a key (`KeyGroupRangeAssignment.computeKeyGroupForKeyHash`).

    Args:
        hash_code: Java's `hashCode` of the key, as a signed or unsigned 32-bit integer.
        max_parallelism: number of key groups.
    """
    return _murmur_hash(hash_code) % max_parallelism


def hash_of_long(value: int) -> int:
    """`Long.hashCode`."""
    return (value ^ value >> 32) & _U32


def hash_of_string(text: str) -> int:
    """`String.hashCode`, over UTF-16 code units."""
    units: Iterable[int] = text.encode() if text.isascii() else _units(text)
    code = 0
    for unit in units:
        code = code * 31 + unit & _U32
    return code


def _units(text: str) -> Iterable[int]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return unpack(f">{len(encoded) // 2}H", encoded)


def hash_of_words(row: bytes) -> int:
    """`BinaryRowData.hashCode`: MurmurHash3 of little-endian words with seed 42 (`MurmurHashUtils.hashBytesByWords`).

    Args:
        row: a whole number of words of 4 bytes.
    """
    code = 42
    for (word,) in _WORD.iter_unpack(row):
        # The rotations are written out: a call of each takes longer than the rest.
        word = word * 0xCC9E2D51 & _U32
        code ^= (word << 15 | word >> 17) * 0x1B873593 & _U32
        code = (code << 13 | code >> 19) * 5 + 0xE6546B64 & _U32
    code ^= len(row)
    code = (code ^ code >> 16) * 0x85EBCA6B & _U32
    code = (code ^ code >> 13) * 0xC2B2AE35 & _U32
    return code ^ code >> 16


def _murmur_hash(code: int) -> int:
    """MurmurHash3 of one 32-bit word with seed 0, made non-negative (`MathUtils.murmurHash`)."""
    code = _rotated(code * 0xCC9E2D51 & _U32, 15) * 0x1B873593 & _U32
    code = _rotated(code, 13) * 5 + 0xE6546B64 & _U32
    code ^= 4
    code = (code ^ code >> 16) * 0x85EBCA6B & _U32
    code = (code ^ code >> 13) * 0xC2B2AE35 & _U32
    code ^= code >> 16
    # As a signed integer. The minimum has no positive counterpart and becomes 0.
    return code if code < 1 << 31 else (1 << 32) - code & 0x7FFFFFFF


def _rotated(code: int, bits: int) -> int:
    return (code << bits | code >> 32 - bits) & _U32
