"""Writers of values with parts: lists, maps, rows, objects, and values that may be null."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.flink.streams.types.composites import RowSerializer
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.types.encoded_columns import (
    NOTHING,
    BadValueError,
    Encoded,
    Fixed,
    Hashes,
    Mask,
    Part,
    constant,
    fixed,
    joined,
    nulls_of,
    ragged,
    refuse,
    refuse_nulls,
    spread,
)
from spark_ckpt.flink.types.record import Write

_LAST_KIND = 3
_NO_SUBCLASS, _NULL_POJO = b"\x02", b"\x01"


def optional(write: Write, flag: Write | None, array: pa.Array) -> Part:
    """Values that may be null, without bytes where they are.

    Args:
        write: writer of values that are not null.
        flag: writer of what stands before each value, from the nulls as booleans; None for nothing.
        array: the column.
    """
    heads = () if flag is None else flag(pa.array(nulls_of(array))).parts
    if not array.null_count:
        return joined((*heads, *write(array).parts), len(array))
    present = ~nulls_of(array)
    some = array.drop_null()
    body = spread(joined(_some(write, array, some, present).parts, len(some)), present)
    return joined((*heads, body), len(array))


def _some(write: Write, array: pa.Array, some: pa.Array, present: Mask) -> Encoded:
    """Values of some rows. Errors have the index in the whole column."""
    try:
        return write(some)
    except BadValueError as bad:
        index = None if bad.index is None else int(np.flatnonzero(present)[bad.index])
        raise BadValueError(index, bad.reason) from None


def nullable_flags(nulls: pa.Array) -> Encoded:
    """A byte for each value: 1 if it is null."""
    return Encoded((fixed(np.asarray(nulls), "u1"),))


def write_enum(serializer: EnumSerializer, array: pa.Array) -> Encoded:
    """Constants of an enum, as their positions."""
    refuse_nulls(array)
    positions = pc.index_in(array, pa.array(serializer.constants, array.type))
    refuse_nulls(positions, f"no constant of {serializer.enum_class}")
    return Encoded((fixed(positions.to_numpy(zero_copy_only=False), ">i4"),))


def write_nullable(write: Write, padding: int, array: pa.Array) -> Encoded:
    """Values that may be null, and padding where they are (`NullableSerializer`)."""
    part = optional(write, nullable_flags, array)
    if not array.null_count or not padding:
        return Encoded((part,))
    absent = nulls_of(array)
    return Encoded((joined((part, spread(constant(bytes(padding), int(absent.sum())), absent)), len(array)),))


def of_elements(write: Write, array: pa.Array, separator: pa.Scalar = NOTHING) -> tuple[NDArray[np.int64], Part]:
    """Numbers of elements of lists, and the bytes of each list: its elements, joined.

    Args:
        write: writer of an element.
        array: lists without nulls.
        separator: bytes between elements.
    """
    counts = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
    elements = ragged(joined(_inside(write, array.flatten()).parts, int(counts.sum())))
    return counts, _joined_lists(counts, elements, separator)


def _joined_lists(counts: NDArray[np.int64], elements: pa.LargeBinaryArray, separator: pa.Scalar) -> Part:
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets), elements), separator)


def _inside(write: Write, values: pa.Array) -> Encoded:
    """Values within those of the rows, so that their indices are not those of rows."""
    try:
        return write(values)
    except BadValueError as bad:
        raise BadValueError(None, f"a value within: {bad.reason}") from None


def write_list(write: Write, array: pa.Array) -> Encoded:
    """Lists (`ListSerializer`)."""
    refuse_nulls(array)
    counts, body = of_elements(write, array)
    return Encoded((fixed(counts, ">i4"), body))


def write_map(keys: Write, values: Write, array: pa.Array) -> Encoded:
    """Maps (`MapSerializer`)."""
    refuse_nulls(array)
    offsets = array.offsets.to_numpy().astype(np.int64)
    counts, start, end = np.diff(offsets), int(offsets[0]), int(offsets[-1])
    # Unlike the offsets, keys and items are those of the whole array, of which this may be a slice.
    key, value = (part.slice(start, end - start) for part in (array.keys, array.items))
    entries = ragged(joined((*_inside(keys, key).parts, optional(values, nullable_flags, value)), len(key)))
    return Encoded((fixed(counts, ">i4"), _joined_lists(counts, entries, NOTHING)))


def write_row(serializer: RowSerializer, parts: Sequence[Write], array: pa.Array) -> Encoded:
    """Rows of the DataStream API (`RowSerializer`)."""
    refuse_nulls(array)
    rows = len(array)
    kinds, *columns = array.flatten()
    refuse_nulls(kinds, "a row without a kind")
    kind = kinds.to_numpy(zero_copy_only=False).astype(np.int64)
    last = _LAST_KIND if serializer.has_row_kind else 0
    refuse((kind < 0) | (kind > last), f"a row kind that is not 0 to {last}")
    first = serializer.kind_bits
    bits = np.zeros((rows, first + len(columns)), np.bool_)
    if serializer.has_row_kind:
        bits[:, 0], bits[:, 1] = kind & 1, kind >> 1
    for number, column in enumerate(columns):
        bits[:, first + number] = nulls_of(column)
    bodies = [optional(write, None, column) for write, column in zip(parts, columns, strict=True)]
    mask: Fixed = np.packbits(bits, axis=1)

    def hashes() -> Hashes:
        # As of an array with each field alone (`RowUtils.deepHashCodeInternal`): a null counts as 0.
        code = np.ones(rows, np.uint32)
        for write, column in zip(parts, columns, strict=True):
            present = ~nulls_of(column)
            each = write(column.drop_null()).hashes
            of_fields = np.zeros(rows, np.uint32)
            assert each is not None
            of_fields[present] = each() + np.uint32(31)
            code = code * np.uint32(31) + of_fields
        code += kind.astype(np.uint32) * np.uint32(31)
        return code

    return Encoded((joined((mask, *bodies), rows),), hashes)


def write_pojo(parts: Sequence[Write], array: pa.Array) -> Encoded:
    """Objects with fields, of no subclass (`PojoSerializer`)."""

    def whole(some: pa.Array) -> Encoded:
        fields = [optional(write, nullable_flags, column) for write, column in zip(parts, some.flatten(), strict=True)]
        return Encoded((constant(_NO_SUBCLASS, len(some)), *fields))

    if not array.null_count:
        return whole(array)
    nulls = nulls_of(array)
    body = optional(whole, None, array)
    return Encoded((joined((spread(constant(_NULL_POJO, int(nulls.sum())), nulls), body), len(array)),))
