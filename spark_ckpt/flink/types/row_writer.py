"""Writer of rows of Flink SQL (`BinaryRowData`), column by column, for fields of plain types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from spark_ckpt.flink.types.encoded_columns import (
    NOTHING,
    BadValueError,
    Encoded,
    Fixed,
    Hashes,
    Lengths,
    Mask,
    Part,
    content_of,
    fixed,
    joined,
    lengths_of,
    nulls_of,
    of_buffers,
    ragged,
    refuse,
    refuse_nulls,
    spread,
)
from spark_ckpt.flink.types.hashes import hashes_of_rows
from spark_ckpt.flink.types.record import Write
from spark_ckpt.flink.types.scalars import with_one_nan
from spark_ckpt.flink.types.sql_values import millis_and_nanos, unscaled_bytes, unscaled_longs
from spark_ckpt.state.vector_rows import ByteRows

_LAST_KIND = 3
_WORD = 8
_FALSE = pa.scalar(False)
_PADDINGS = pa.array([bytes(size) for size in range(_WORD)], pa.large_binary())


class _Slots(NamedTuple):
    """Slots of a field, and what it has in the variable part.

    Args:
        words: content of the slots, without offsets.
        variable: bytes in the variable part; None if no row has any.
        far: rows whose slot has the offset of these bytes.
    """

    words: NDArray[np.uint64]
    variable: Part | None = None
    far: Mask | None = None


def has_writer(kind: LogicalType) -> bool:
    """True if `row_data_writer` writes fields of a type: all but types with types within, and `RAW`."""
    return kind.root in (*NUMBER_CODES, *VARIABLE_ROOTS, "BOOLEAN", "DECIMAL") or kind.root.startswith("TIMESTAMP")


def row_data_writer(serializer: RowDataSerializer, *, codegen: bool = False) -> Write:
    """Writer of rows.

    Args:
        serializer: their serializer; its types have a writer, see `has_writer`.
        codegen: True if nulls of TIMESTAMP(4..9) and DECIMAL(19..38) keep their places in the variable part.
    """
    types = serializer.types
    header = header_bytes(len(types))

    def write(array: pa.Array) -> Encoded:
        refuse_nulls(array)
        rows = len(array)
        kinds, *columns = array.flatten()
        head = np.zeros((rows, header + _WORD * len(types)), np.uint8)
        head[:, 0] = _kinds(kinds)
        at = np.full(rows, head.shape[1], np.int64)
        variables: list[Part] = []
        for number, (kind, column) in enumerate(zip(types, columns, strict=True)):
            nulls = nulls_of(column)
            if not kind.nullable:
                refuse(nulls, f"a null in field {number}, which is {kind}")
            bit = number + KIND_BITS
            head[:, bit // 8] |= nulls.astype(np.uint8) << np.uint8(bit % 8)
            try:
                slots = _slots(kind, column, nulls, codegen=codegen)
            except BadValueError as bad:
                raise BadValueError(bad.index, f"field {number}: {bad.reason}") from None
            words = slots.words
            if slots.variable is not None and slots.far is not None:
                words = words | np.where(slots.far, at, 0).astype(np.uint64) << np.uint64(32)
                at += lengths_of([slots.variable], rows)
                variables.append(slots.variable)
            start = header + _WORD * number
            head[:, start : start + _WORD] = fixed(words, "<u8")
        row = joined((head, *variables), rows)
        return Encoded((fixed(at, ">i4"), row), lambda: _hashes(row))

    return write


def _kinds(kinds: pa.Array) -> NDArray[np.int8]:
    refuse_nulls(kinds, "a row without a kind")
    result: NDArray[np.int8] = kinds.to_numpy(zero_copy_only=False)
    refuse((result < 0) | (result > _LAST_KIND), "a row kind that is not 0 to 3")
    return result


def _hashes(row: Part) -> Hashes:
    offsets, content = content_of(ragged(row))
    return hashes_of_rows(ByteRows(content, offsets[:-1], offsets[1:]), offsets[:-1], np.diff(offsets))


def _slots(kind: LogicalType, column: pa.Array, nulls: Mask, *, codegen: bool) -> _Slots:
    if kind.root == "BOOLEAN":
        return _Slots(column.fill_null(_FALSE).to_numpy(zero_copy_only=False).astype(np.uint64))
    if kind.root in NUMBER_CODES:
        return _Slots(_numbers(column))
    if kind.root == "DECIMAL":
        if is_compact_decimal(kind.parameters[0]):
            return _Slots(np.where(nulls, 0, unscaled_longs(column)).astype(np.int64).view(np.uint64))
        lengths, content = unscaled_bytes(column)
        return _placed(lengths, content, nulls, codegen=codegen)
    if kind.root.startswith("TIMESTAMP"):
        millis, nanos = millis_and_nanos(column, kind.parameters[0])
        if is_compact_timestamp(kind.parameters[0]):
            return _Slots(np.where(nulls, 0, millis).view(np.uint64))
        return _placed(nanos, fixed(millis, "<i8"), nulls, codegen=codegen)
    if kind.root in VARIABLE_ROOTS:
        return _text(column, nulls)
    raise TypeError(f"no encoding of {kind}")


def _numbers(column: pa.Array) -> NDArray[np.uint64]:
    if pa.types.is_date(column.type) or pa.types.is_time(column.type):
        column = column.cast(pa.int32())
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        values = with_one_nan(values)
    wide: NDArray[np.uint64] = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return wide


def _placed(low: Lengths, content: Fixed, nulls: Mask, *, codegen: bool) -> _Slots:
    """Values that have as many bytes in the variable part, whatever they are."""
    words = np.where(nulls, 0, low).astype(np.uint64)
    if not nulls.any():
        return _Slots(words, content, ~nulls)
    if codegen:
        return _Slots(words, np.where(nulls[:, None], 0, content).astype(np.uint8), np.ones_like(nulls))
    return _Slots(words, spread(content[~nulls], ~nulls), ~nulls)


def _text(column: pa.Array, nulls: Mask) -> _Slots:
    """Text and bytes: up to 7 of them lie in the slot."""
    offsets, content = content_of(column)
    lengths = np.diff(offsets)
    far = lengths > MAX_INLINE
    slots = np.zeros((len(lengths), _WORD), np.uint8)
    places = np.arange(MAX_INLINE)
    padded = np.concatenate([content, np.zeros(MAX_INLINE, np.uint8)])
    inline = padded[offsets[:-1, None] + places]
    slots[:, :MAX_INLINE] = np.where(places < lengths[:, None], inline, 0)
    slots[:, MAX_INLINE] = 0x80 | np.where(far, 0, lengths)
    words = np.where(far, lengths.astype(np.uint64), slots.view("<u8")[:, 0])
    words[nulls] = 0
    if not far.any():
        return _Slots(words)
    whole = of_buffers(offsets, content)
    variable = whole if far.all() else pc.if_else(pa.array(far), whole, NOTHING)
    paddings = _PADDINGS.take(pa.array(np.where(far, -lengths % _WORD, 0)))
    return _Slots(words, pc.binary_join_element_wise(variable, paddings, NOTHING), far)
