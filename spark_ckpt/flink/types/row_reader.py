"""Reader of rows of Flink SQL (`BinaryRowData`), column by column, for fields of plain types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.flink.streams.types.binary_row import (
    KIND_BITS,
    MAX_INLINE,
    header_bytes,
    is_compact_decimal,
    is_compact_timestamp,
)
from spark_ckpt.flink.streams.types.logical_types import NUMBER_CODES, VARIABLE_ROOTS, LogicalType
from spark_ckpt.flink.streams.types.row_data import RowDataSerializer
from spark_ckpt.flink.types.hashes import hashes_of_rows
from spark_ckpt.flink.types.record import Read
from spark_ckpt.state.vector_rows import ByteRows, Column, NotPlainError, Positions

_U32 = 0xFFFFFFFF
_NANOS = 1_000_000
_MAX_MICROSECOND_DIGITS = 6
_MAX_HASHED_BYTES = 4096
_ReadField = Callable[[ByteRows, Positions, Positions, Positions, NDArray[np.bool_]], pa.Array]
"""Reader of a field: the rows, their starts and lengths, the places of its slots, and where it is null."""


def row_data_reader(serializer: RowDataSerializer, arrow: pa.DataType) -> Read | None:
    """Reader of rows; None if a field has a type without a reader here.

    Args:
        serializer: their serializer.
        arrow: Arrow type of the rows.
    """
    fields = list(arrow)
    readers = [_field(kind, field.type) for kind, field in zip(serializer.types, fields[1:], strict=True)]
    plain = [reader for reader in readers if reader is not None]
    if len(plain) != len(readers):
        return None
    header = header_bytes(len(readers))

    def read(rows: ByteRows) -> Column:
        lengths = rows.numbers(">i4").astype(np.int64)
        starts = rows.at
        if lengths.size and int(lengths.min()) < header + 8 * len(plain):
            raise NotPlainError
        rows.skip(lengths)
        kinds = rows.numbers_at("i1", starts)
        arrays = [pa.array(kinds)]
        left = lengths.copy()
        for number, field in enumerate(plain):
            bit = number + KIND_BITS
            nulls = (rows.numbers_at("u1", starts + bit // 8) >> np.uint8(bit % 8) & 1).astype(np.bool_)
            slots = starts + header + 8 * number
            if serializer.types[number].root in VARIABLE_ROOTS:
                # Each value has bytes of its own. Shared ones would stand for any number of bytes.
                left -= np.where(nulls, 0, _far_sizes(rows, slots))
                if (left < 0).any():
                    raise NotPlainError
            arrays.append(field(rows, starts, lengths, slots, nulls))
        # Only keys need hashes, and long keys are read one by one.
        is_short = int(lengths.max(initial=0)) <= _MAX_HASHED_BYTES
        hashes = hashes_of_rows(rows, starts, lengths) if is_short else None
        return Column(pa.StructArray.from_arrays(arrays, fields=fields), hashes)

    return read


def _field(kind: LogicalType, arrow: pa.DataType) -> _ReadField | None:
    root = kind.root
    if root == "BOOLEAN":
        return lambda rows, starts, lengths, slots, nulls: pa.array(rows.numbers_at("u1", slots) != 0, mask=nulls)
    if root in NUMBER_CODES:
        code = f"<{NUMBER_CODES[root]}"
        return lambda rows, starts, lengths, slots, nulls: pa.array(rows.numbers_at(code, slots), mask=nulls).cast(
            arrow
        )
    if root in VARIABLE_ROOTS:
        return lambda rows, starts, lengths, slots, nulls: _variable(rows, starts, lengths, slots, nulls, arrow)
    if root == "DECIMAL" and is_compact_decimal(kind.parameters[0]):
        return lambda rows, starts, lengths, slots, nulls: _decimal(rows, slots, nulls, arrow)
    if root.startswith("TIMESTAMP") and kind.parameters[0] <= _MAX_MICROSECOND_DIGITS:
        is_compact = is_compact_timestamp(kind.parameters[0])
        return lambda rows, starts, lengths, slots, nulls: _timestamp(
            rows, starts, lengths, slots, nulls, arrow, is_compact=is_compact
        )
    return None


def _far_sizes(rows: ByteRows, slots: Positions) -> Positions:
    """Bytes that texts or binaries take behind the slots."""
    content = rows.numbers_at("<u8", slots)
    return np.where(content >> np.uint64(63) == 1, 0, content & np.uint64(_U32)).astype(np.int64)


def _variable(
    rows: ByteRows,
    starts: Positions,
    lengths: Positions,
    slots: Positions,
    nulls: NDArray[np.bool_],
    arrow: pa.DataType,
) -> pa.Array:
    content = rows.numbers_at("<u8", slots)
    is_inline = content >> np.uint64(63) == 1
    inline = (content >> np.uint64(56) & np.uint64(0x7F)).astype(np.int64)
    far, size = (content >> np.uint64(32)).astype(np.int64), (content & np.uint64(_U32)).astype(np.int64)
    sizes = np.where(nulls, 0, np.where(is_inline, inline, size))
    places = np.where(is_inline, slots, starts + far)
    is_outside = np.where(is_inline, inline > MAX_INLINE, far + size > lengths)
    if (is_outside & ~nulls).any():
        raise NotPlainError
    offsets, found = rows.ragged_at(np.where(nulls, starts, places), sizes)
    buffers = [_bitmap(nulls), pa.py_buffer(offsets), pa.py_buffer(found)]
    array = pa.Array.from_buffers(arrow, nulls.size, buffers)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise NotPlainError from None
    return array


def _decimal(rows: ByteRows, slots: Positions, nulls: NDArray[np.bool_], arrow: pa.DataType) -> pa.Array:
    unscaled = rows.numbers_at("<i8", slots).astype(np.int64)
    if (np.abs(unscaled) >= 10**arrow.precision).any():
        raise NotPlainError
    wide = np.empty((unscaled.size, 2), np.int64)
    wide[:, 0], wide[:, 1] = unscaled, unscaled >> 63
    return pa.Array.from_buffers(arrow, nulls.size, [_bitmap(nulls), pa.py_buffer(wide)])


def _timestamp(
    rows: ByteRows,
    starts: Positions,
    lengths: Positions,
    slots: Positions,
    nulls: NDArray[np.bool_],
    arrow: pa.DataType,
    *,
    is_compact: bool,
) -> pa.Array:
    if is_compact:
        micros = rows.numbers_at("<i8", slots).astype(np.int64)
        nanos: Positions = np.zeros(slots.size, np.int64)
    else:
        content = rows.numbers_at("<u8", slots)
        far, nanos = (content >> np.uint64(32)).astype(np.int64), (content & np.uint64(_U32)).astype(np.int64)
        if (((far + 8 > lengths) | (nanos >= _NANOS)) & ~nulls).any():
            raise NotPlainError
        micros = rows.numbers_at("<i8", np.where(nulls, slots, starts + far)).astype(np.int64)
    maximum = (1 << 63) // 1000 - 1000
    if (np.abs(micros) > maximum).any():
        raise NotPlainError
    return pa.array(micros * 1000 + nanos // 1000, mask=nulls).cast(arrow)


def _bitmap(nulls: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(~nulls, bitorder="little"))
