"""`StringSerializer` for many strings at once: UTF-16 code units as varints, and `String.hashCode`."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.types.encoded_columns import (
    Encoded,
    Lengths,
    Part,
    content_of,
    fixed,
    joined,
    nulls_of,
    of_buffers,
    refuse_nulls,
)
from spark_ckpt.flink.types.hashes import hashes_of_units
from spark_ckpt.state.vector_rows import ByteRows, Column, NotPlainError

Units: TypeAlias = NDArray[np.uint16] | NDArray[np.uint8]
"""UTF-16 code units, of ASCII in bytes."""

_MAX_SHORT = 127
_MAX_VARINT = 5


def read_strings(rows: ByteRows) -> Column:
    """Short strings of ASCII."""
    heads = rows.numbers("u1").astype(np.int64)
    # 0 stands for null, and longer ones have longer heads.
    if heads.size and not 1 <= int(heads.min()) <= int(heads.max()) <= _MAX_SHORT:
        raise NotPlainError
    offsets, content = rows.ragged(heads - 1)
    if content.size and int(content.max()) >= 0x80:
        raise NotPlainError
    array = pa.StringArray.from_buffers(heads.size, pa.py_buffer(offsets), pa.py_buffer(content))
    return Column(array, hashes_of_units(offsets.astype(np.int64), content))


def write_strings(array: pa.Array) -> Encoded:
    """Strings as `StringValue.writeString` writes them: number of code units plus 1 (0 for null), then each unit."""
    offsets, content = content_of(array)
    if not content.size or int(content.max()) < 0x80:
        units: Units = content
        unit_offsets = offsets
        body: Part = of_buffers(offsets, content)
    else:
        unit_offsets, units = _utf_16(offsets, content)
        sizes, encoded = _varints(units.astype(np.uint64))
        ends = np.zeros(units.size + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        body = of_buffers(ends[unit_offsets], encoded)
    heads = np.diff(unit_offsets) + 1
    heads[nulls_of(array)] = 0
    return Encoded((_heads(heads), body), lambda: hashes_of_units(unit_offsets, units))


def _heads(numbers: Lengths) -> Part:
    if not numbers.size or int(numbers.max()) <= _MAX_SHORT:
        return fixed(numbers, "u1")
    sizes, encoded = _varints(numbers.astype(np.uint64))
    offsets = np.zeros(numbers.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return of_buffers(offsets, encoded)


def _utf_16(offsets: Lengths, content: NDArray[np.uint8]) -> tuple[Lengths, Units]:
    """Offsets of the code units of each row, and all units."""
    # Each character has one lead byte; those of four bytes are a pair of surrogates.
    counts = (content & 0xC0 != 0x80).astype(np.int64) + (content >= 0xF0)
    before = np.zeros(content.size + 1, np.int64)
    np.cumsum(counts, out=before[1:])
    return before[offsets], np.frombuffer(content.tobytes().decode().encode("utf-16-le"), "<u2")


def _varints(numbers: NDArray[np.uint64]) -> tuple[Lengths, NDArray[np.uint8]]:
    """Bytes of each number, and all bytes: 7 bits a byte, lowest first."""
    sizes = np.ones(numbers.size, np.int64)
    for longer in range(1, _MAX_VARINT):
        sizes += numbers >= 1 << 7 * longer
    ends = np.cumsum(sizes)
    starts = ends - sizes
    encoded = np.zeros(int(ends[-1]) if ends.size else 0, np.uint8)
    for place in range(_MAX_VARINT):
        which = np.flatnonzero(sizes > place)
        if not which.size:
            break
        bits = numbers[which] >> np.uint64(7 * place) & np.uint64(0x7F)
        more = (sizes[which] > place + 1).astype(np.uint64) << np.uint64(7)
        encoded[starts[which] + place] = bits | more
    return sizes, encoded


def read_bytes(rows: ByteRows) -> Column:
    """Bytes behind their `i32` length (`BytePrimitiveArraySerializer`)."""
    lengths = rows.numbers(">i4").astype(np.int64)
    if lengths.size and int(lengths.min()) < 0:
        raise NotPlainError
    offsets, content = rows.ragged(lengths)
    return Column(
        pa.BinaryArray.from_buffers(pa.binary(), lengths.size, [None, *map(pa.py_buffer, (offsets, content))])
    )


def write_bytes(array: pa.Array) -> Encoded:
    """Bytes, or text in UTF-8, behind their `i32` length (`StringDataSerializer`, `BytePrimitiveArraySerializer`)."""
    refuse_nulls(array)
    offsets, content = content_of(array)
    body = of_buffers(offsets, content)
    return Encoded((joined((fixed(np.diff(offsets), ">i4"), body), len(array)),))
