"""Encoders: Arrow columns to the bytes that Flink's serializers write, all rows of a column at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.flink.export.encoded_columns import (
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
from spark_ckpt.flink.export.row_data import row_data_encoder, with_one_nan
from spark_ckpt.flink.export.scalar_encoding import one_by_one
from spark_ckpt.flink.export.sql_values import decimals, timestamps
from spark_ckpt.flink.export.text import strings, with_lengths
from spark_ckpt.flink.streams.types import primitives, text, times
from spark_ckpt.flink.streams.types.base import Serializer, SimpleSerializer
from spark_ckpt.flink.streams.types.composites import (
    ListSerializer,
    MapSerializer,
    NullableSerializer,
    RowSerializer,
    TtlSerializer,
    TupleSerializer,
)
from spark_ckpt.flink.streams.types.enums import EnumSerializer
from spark_ckpt.flink.streams.types.pojo import PojoSerializer
from spark_ckpt.flink.streams.types.row_data import (
    DecimalDataSerializer,
    RowDataSerializer,
    TimestampDataSerializer,
)

Encode: TypeAlias = Callable[[pa.Array], Encoded]
"""Encoder of a column.

Raises:
    BadValueError: a value does not fit the serializer.
"""

_NUMBERS = {
    primitives.BYTE: ">i1",
    primitives.SHORT: ">i2",
    primitives.INT: ">i4",
    primitives.LONG: ">i8",
    primitives.FLOAT: ">f4",
    primitives.DOUBLE: ">f8",
    times.DATE: ">i8",
    times.SQL_DATE: ">i8",
    times.SQL_TIME: ">i8",
}
_MIN_LONG = -(1 << 63)
_KIND_BITS = 2
_LAST_KIND = 3
_NO_SUBCLASS, _NULL_POJO = b"\x02", b"\x01"


def encoder_of(serializer: Serializer, *, codegen: bool = False) -> Encode:
    """Encoder of a serializer's values.

    Args:
        serializer: a serializer that passes `spark_ckpt.flink.export.check.check`.
        codegen: True if generated code of Flink SQL makes the values, where they are rows.
    """
    if serializer in _NUMBERS:
        return lambda array: _number(serializer, array)
    if isinstance(serializer, SimpleSerializer):
        simple: dict[Serializer, Encode] = {
            primitives.BOOLEAN: _boolean,
            primitives.BYTES: _texts,
            primitives.VOID_NAMESPACE: lambda array: Encoded((constant(b"\0", len(array)),)),
            primitives.TIME_WINDOW: _time_window,
            primitives.SQL_TIME_WINDOW: _time_window,
            text.STRING: strings,
            text.STRING_DATA: _texts,
        }
        return simple.get(serializer) or (lambda array: one_by_one(serializer, array))
    if isinstance(serializer, RowDataSerializer):
        return row_data_encoder(serializer, codegen=codegen)
    if isinstance(serializer, DecimalDataSerializer):
        return lambda array: decimals(array, serializer.precision)
    if isinstance(serializer, TimestampDataSerializer):
        return lambda array: timestamps(array, serializer.precision)
    if isinstance(serializer, EnumSerializer):
        return lambda array: _enum(serializer, array)
    parts = [encoder_of(part) for part in serializer.nested]
    if isinstance(serializer, NullableSerializer):
        return lambda array: _nullable(parts[0], serializer.padding, array)
    if isinstance(serializer, ListSerializer):
        return lambda array: _list(parts[0], array)
    if isinstance(serializer, MapSerializer):
        return lambda array: _map(parts[0], parts[1], array)
    if isinstance(serializer, TupleSerializer):
        return lambda array: _tuple(parts, array)
    if isinstance(serializer, TtlSerializer):
        return lambda array: Encoded(_tuple([_millis, parts[1]], array).parts)
    if isinstance(serializer, RowSerializer):
        return lambda array: _row(serializer, parts, array)
    assert isinstance(serializer, PojoSerializer)
    return lambda array: _pojo(parts, array)


def optional(encode: Encode, flag: Encode | None, array: pa.Array) -> Part:
    """Values that may be null, without bytes where they are.

    Args:
        encode: encoder of values that are not null.
        flag: encoder of what stands before each value, from the nulls as booleans; None for nothing.
        array: the column.
    """
    heads = () if flag is None else flag(pa.array(nulls_of(array))).parts
    if not array.null_count:
        return joined((*heads, *encode(array).parts), len(array))
    present = ~nulls_of(array)
    some = array.drop_null()
    body = spread(joined(_some(encode, array, some, present).parts, len(some)), present)
    return joined((*heads, body), len(array))


def _some(encode: Encode, array: pa.Array, some: pa.Array, present: Mask) -> Encoded:
    """Values of some rows. Errors have the index in the whole column."""
    try:
        return encode(some)
    except BadValueError as bad:
        index = None if bad.index is None else int(np.flatnonzero(present)[bad.index])
        raise BadValueError(index, bad.reason) from None


def nullable_flags(nulls: pa.Array) -> Encoded:
    """A byte for each value: 1 if it is null."""
    return Encoded((fixed(np.asarray(nulls), "u1"),))


def hash_of_longs(values: NDArray[np.int64]) -> Hashes:
    """`Long.hashCode` of each number."""
    found: Hashes = (values ^ values >> 32).astype(np.uint32)
    return found


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Numbers of a column; of times, milliseconds since 1970.

    Raises:
        BadValueError: there is a null.
    """
    refuse_nulls(array)
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    found: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return with_one_nan(found) if found.dtype.kind == "f" else found


def _number(serializer: Serializer, array: pa.Array) -> Encoded:
    if array.null_count and serializer not in (primitives.BYTE, primitives.SHORT, primitives.INT, primitives.LONG):
        array = _with_null_dates(serializer, array)
    values = numbers_of(array)

    def hashes() -> Hashes:
        if values.dtype == np.float32:
            return values.view(np.uint32)
        if values.dtype.itemsize == 8:
            return hash_of_longs(values.view(np.int64))
        found: Hashes = values.astype(np.int64).astype(np.uint32)
        return found

    return Encoded((fixed(values, _NUMBERS[serializer]),), hashes)  # type: ignore[index]


def _with_null_dates(serializer: Serializer, array: pa.Array) -> pa.Array:
    """Times, with the least number for null, as their serializers write it."""
    if serializer not in (times.DATE, times.SQL_DATE, times.SQL_TIME):
        return array
    return array.cast(pa.int64()).fill_null(_MIN_LONG)


def _boolean(array: pa.Array) -> Encoded:
    refuse_nulls(array)
    values = array.to_numpy(zero_copy_only=False)
    return Encoded((fixed(values, "u1"),), lambda: np.where(values, 1231, 1237).astype(np.uint32))


def _texts(array: pa.Array) -> Encoded:
    refuse_nulls(array)
    return with_lengths(array)


def _millis(array: pa.Array) -> Encoded:
    return Encoded((fixed(numbers_of(array), ">i8"),))


def _time_window(array: pa.Array) -> Encoded:
    return Encoded(_tuple([_millis, _millis], array).parts)


def _enum(serializer: EnumSerializer, array: pa.Array) -> Encoded:
    refuse_nulls(array)
    positions = pc.index_in(array, pa.array(serializer.constants, array.type))
    refuse_nulls(positions, f"no constant of {serializer.enum_class}")
    return Encoded((fixed(positions.to_numpy(zero_copy_only=False), ">i4"),))


def _nullable(encode: Encode, padding: int, array: pa.Array) -> Encoded:
    part = optional(encode, nullable_flags, array)
    if not array.null_count or not padding:
        return Encoded((part,))
    absent = nulls_of(array)
    return Encoded((joined((part, spread(constant(bytes(padding), int(absent.sum())), absent)), len(array)),))


def of_elements(encode: Encode, array: pa.Array, separator: pa.Scalar = NOTHING) -> tuple[NDArray[np.int64], Part]:
    """Numbers of elements of lists, and the bytes of each list: its elements, joined.

    Args:
        encode: encoder of an element.
        array: lists without nulls.
        separator: bytes between elements.
    """
    counts = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
    elements = ragged(joined(_inside(encode, array.flatten()).parts, int(counts.sum())))
    return counts, _joined_lists(counts, elements, separator)


def _joined_lists(counts: NDArray[np.int64], elements: pa.LargeBinaryArray, separator: pa.Scalar) -> Part:
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(offsets), elements), separator)


def _inside(encode: Encode, values: pa.Array) -> Encoded:
    """Values within those of the rows, so that their indices are not those of rows."""
    try:
        return encode(values)
    except BadValueError as bad:
        raise BadValueError(None, f"a value within: {bad.reason}") from None


def _list(encode: Encode, array: pa.Array) -> Encoded:
    refuse_nulls(array)
    counts, body = of_elements(encode, array)
    return Encoded((fixed(counts, ">i4"), body))


def _map(keys: Encode, values: Encode, array: pa.Array) -> Encoded:
    refuse_nulls(array)
    offsets = array.offsets.to_numpy().astype(np.int64)
    counts, start, end = np.diff(offsets), int(offsets[0]), int(offsets[-1])
    # Unlike the offsets, keys and items are those of the whole array, of which this may be a slice.
    key, value = (part.slice(start, end - start) for part in (array.keys, array.items))
    entries = ragged(joined((*_inside(keys, key).parts, optional(values, nullable_flags, value)), len(key)))
    return Encoded((fixed(counts, ">i4"), _joined_lists(counts, entries, NOTHING)))


def _tuple(parts: Sequence[Encode], array: pa.Array) -> Encoded:
    refuse_nulls(array)
    found = [encode(column) for encode, column in zip(parts, array.flatten(), strict=True)]
    hashes = [each.hashes for each in found if each.hashes is not None]

    def combined() -> Hashes:
        code = np.zeros(len(array), np.uint32)
        for each in hashes:
            code = code * np.uint32(31) + each()
        return code

    return Encoded(
        (joined([part for each in found for part in each.parts], len(array)),),
        combined if len(hashes) == len(found) else None,
    )


def _row(serializer: RowSerializer, parts: Sequence[Encode], array: pa.Array) -> Encoded:
    refuse_nulls(array)
    rows = len(array)
    kinds, *columns = array.flatten()
    refuse_nulls(kinds, "a row without a kind")
    kind = kinds.to_numpy(zero_copy_only=False).astype(np.int64)
    last = _LAST_KIND if serializer.has_row_kind else 0
    refuse((kind < 0) | (kind > last), f"a row kind that is not 0 to {last}")
    first = _KIND_BITS if serializer.has_row_kind else 0
    bits = np.zeros((rows, first + len(columns)), np.bool_)
    if serializer.has_row_kind:
        bits[:, 0], bits[:, 1] = kind & 1, kind >> 1
    for number, column in enumerate(columns):
        bits[:, first + number] = nulls_of(column)
    bodies = [optional(encode, None, column) for encode, column in zip(parts, columns, strict=True)]
    mask: Fixed = np.packbits(bits, axis=1)

    def hashes() -> Hashes:
        # As of an array with each field alone (`RowUtils.deepHashCodeInternal`): a null counts as 0.
        code = np.ones(rows, np.uint32)
        for encode, column in zip(parts, columns, strict=True):
            present = ~nulls_of(column)
            each = encode(column.drop_null()).hashes
            of_fields = np.zeros(rows, np.uint32)
            assert each is not None
            of_fields[present] = each() + np.uint32(31)
            code = code * np.uint32(31) + of_fields
        code += kind.astype(np.uint32) * np.uint32(31)
        return code

    return Encoded((joined((mask, *bodies), rows),), hashes)


def _pojo(parts: Sequence[Encode], array: pa.Array) -> Encoded:
    def whole(some: pa.Array) -> Encoded:
        fields = [
            optional(encode, nullable_flags, column) for encode, column in zip(parts, some.flatten(), strict=True)
        ]
        return Encoded((constant(_NO_SUBCLASS, len(some)), *fields))

    if not array.null_count:
        return whole(array)
    nulls = nulls_of(array)
    body = optional(whole, None, array)
    return Encoded((joined((spread(constant(_NULL_POJO, int(nulls.sum())), nulls), body), len(array)),))
