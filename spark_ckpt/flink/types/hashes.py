"""Java's hash codes of many values at once, and Flink's key groups of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.flink.types.encoded_columns import Hashes, Lengths
from spark_ckpt.state.vector_rows import ByteRows, NotPlainError, Positions

_TRUE, _FALSE = 1231, 1237


def hashes_of_booleans(values: NDArray[np.bool_]) -> Hashes:
    """`Boolean.hashCode` of each value."""
    return np.where(values, _TRUE, _FALSE).astype(np.uint32)


def hashes_of_numbers(values: NDArray[np.generic]) -> Hashes:
    """`hashCode` of each integer, or float with Java's NaN."""
    if values.dtype == np.float32:
        return values.view(np.uint32)
    if values.dtype.itemsize == 8:
        wide = values.view(np.int64)
        return (wide ^ wide >> 32).astype(np.uint32)
    return values.astype(np.int64).astype(np.uint32)


def hashes_of_units(offsets: Lengths, units: NDArray[np.unsignedinteger]) -> Hashes:
    """`String.hashCode` of each string.

    Args:
        offsets: where the UTF-16 code units of each string begin, and the end of the last one.
        units: units of all strings.
    """
    lengths = np.diff(offsets)
    powers = np.ones(int(lengths.max(initial=0)) + 1, np.uint32)
    np.multiply.accumulate(np.full(powers.size - 1, 31, np.uint32), out=powers[1:])
    behind = np.repeat(offsets[1:], lengths) - 1 - np.arange(units.size)
    sums = np.zeros(units.size + 1, np.uint32)
    np.cumsum(units.astype(np.uint32) * powers[behind], out=sums[1:], dtype=np.uint32)
    result: Hashes = sums[offsets[1:]] - sums[offsets[:-1]]
    return result


def hashes_of_tuples(hashes: Sequence[Hashes], rows: int) -> Hashes:
    """`hashCode` of tuples of Flink, from those of their fields."""
    code = np.zeros(rows, np.uint32)
    for each in hashes:
        code = code * np.uint32(31) + each
    return code


def hashes_of_rows(rows: ByteRows, starts: Positions, lengths: Positions) -> Hashes:
    """`BinaryRowData.hashCode`.

    Args:
        rows: bytes that have the rows.
        starts: where each row begins.
        lengths: bytes of each row.

    Raises:
        NotPlainError: a row is not a whole number of words of 4 bytes.
    """
    if (lengths % 4).any():
        raise NotPlainError
    code = np.full(starts.size, 42, np.uint32)
    for at in range(0, int(lengths.max(initial=0)), 4):
        active = np.flatnonzero(lengths > at)
        code[active] = _mixed(code[active], rows.numbers_at("<u4", starts[active] + at).astype(np.uint32))
    return _finished(code ^ lengths.astype(np.uint32))


def key_groups_of(hashes: Hashes, max_parallelism: int) -> NDArray[np.int32]:
    """Key groups of hashes (`KeyGroupRangeAssignment.computeKeyGroupForKeyHash`)."""
    code = _finished(_mixed(np.zeros_like(hashes), hashes) ^ np.uint32(4))
    # The absolute value as a signed integer. The minimum has none and becomes 0.
    signed = np.abs(code.view(np.int32).astype(np.int64)) & 0x7FFFFFFF
    result: NDArray[np.int32] = (signed % max_parallelism).astype(np.int32)
    return result


def _mixed(code: Hashes, word: Hashes) -> Hashes:
    """Murmur3: a hash with another word of 32 bits."""
    mixed = code ^ _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    result: Hashes = _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return result


def _finished(code: Hashes) -> Hashes:
    code = (code ^ code >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    code = (code ^ code >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    result: Hashes = code ^ code >> np.uint32(16)
    return result


def _rotated(code: Hashes, bits: int) -> Hashes:
    result: Hashes = code << np.uint32(bits) | code >> np.uint32(32 - bits)
    return result
