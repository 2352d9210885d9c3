"""Decoding of UnsafeRows, a whole column at a time.

A row consists of null bits, a slot of 8 bytes per field, and values of variable length. A slot holds a value, or the
position and size of one: `offset << 32 | size`, the offset relative to the start of the row (`UnsafeRow`). An array
consists of its number of elements, null bits, and slots as wide as its elements (`UnsafeArrayData`). A map consists of
the size of its key array, the key array and the value array (`UnsafeMapData`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.spark_files.types import (
    Array,
    Bytes,
    CalendarInterval,
    Decimal,
    Fixed,
    Map,
    Null,
    SparkType,
    Struct,
    Variant,
)
from spark_ckpt.state.rows import Rows

_SIZE = 0xFFFFFFFF
_DECIMAL_BYTES = 16
_INTERVAL_BYTES = 16


def decode_rows(kind: Struct, rows: Rows) -> pa.StructArray:
    """The rows as an Arrow array of non-null structs.

    Raises:
        StateRowError: a row is too short, or has a value out of bounds.
    """
    rows.check(rows.sizes < kind.fixed_bytes, f"a row of {{size}} bytes; expected at least {kind.fixed_bytes}")
    columns = []
    for index, field in enumerate(kind.types):
        nulls = null_bits(rows, rows.starts, index)
        columns.append(_column(field, rows.starts + (kind.null_bytes + 8 * index), nulls, rows))
    return struct_array(columns, list(kind.arrow), len(rows))


def struct_array(columns: Sequence[pa.Array], fields: list[pa.Field], length: int) -> pa.StructArray:
    """Structs of columns. Without columns, Arrow needs their number."""
    if not columns:
        return pa.Array.from_buffers(pa.struct([]), length, [None])
    return pa.StructArray.from_arrays(columns, fields=fields)


def null_bits(rows: Rows, starts: NDArray[np.int64], index: int | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Bit `index` of the bit set that begins at each start (`BitSetMethods.isSet`)."""
    words = rows.buffer.words(starts + index // 64 * 8)
    bits: NDArray[np.bool_] = (words >> (index % 64) & 1).astype(np.bool_)
    return bits


def _column(kind: SparkType, at: NDArray[np.int64], nulls: NDArray[np.bool_], within: Rows) -> pa.Array:
    """The values of the slots at `at`, each in a row or array of `within`."""
    match kind:
        case Null():
            return pa.nulls(at.size)
        case Fixed():
            return _fixed(kind, within.buffer.read(kind.stored, at), nulls)
        case Decimal() if kind.is_long:
            low = within.buffer.words(at)
            return _decimals(kind, np.stack((low, low >> 63), axis=1), nulls)
    values = spans(at, nulls, within)
    match kind:
        case Bytes():
            return _bytes(kind.arrow, values, nulls)
        case Decimal():
            return _decimals(kind, _big_integers(values, nulls), nulls)
        case CalendarInterval():
            return _intervals(values, nulls)
        case Variant():
            return _variants(values, nulls)
        case Array():
            return _arrays(kind, values, nulls)
        case Map():
            return _maps(kind, values, nulls)
        case Struct():
            return _expand(decode_rows(kind, values.take(np.flatnonzero(~nulls))), nulls)


def spans(at: NDArray[np.int64], nulls: NDArray[np.bool_], within: Rows) -> Rows:
    """Positions of values of variable length. A null has no bytes."""
    slots = within.buffer.words(at)
    offsets, sizes = slots >> 32, slots & _SIZE
    offsets[nulls] = sizes[nulls] = 0
    wrong = (offsets < 0) | (offsets + sizes > within.sizes)
    if wrong.any():
        first = int(np.argmax(wrong))
        reason = f"a value of {sizes[first]} bytes at {offsets[first]} exceeds its row of {within.sizes[first]} bytes"
        raise within.buffer.fail(int(at[first]), reason)
    return Rows(within.buffer, within.starts + offsets, sizes)


def _fixed(kind: Fixed, values: NDArray[np.generic], nulls: NDArray[np.bool_]) -> pa.Array:
    stored = pa.array(values != 0 if pa.types.is_boolean(kind.arrow) else values, mask=nulls)
    return stored if stored.type == kind.arrow else stored.view(kind.arrow)


def binary_array(values: Rows, nulls: NDArray[np.bool_] | None = None) -> pa.LargeBinaryArray:
    """The bytes of each row or value.

    Raises:
        StateRowError: two of them overlap.
    """
    count = len(values)
    edges = np.zeros(2 * count, np.int64)
    present = values.sizes > 0
    edges[0::2] = np.where(present, values.starts, 0)
    edges[1::2] = edges[0::2] + values.sizes
    # The gaps between values are elements too, and dropped: Arrow then copies the values in bulk.
    edges = np.maximum.accumulate(edges)
    values.check(present & (edges[0::2] != values.starts), "a value of {size} bytes overlaps another")
    parts = [None, pa.py_buffer(edges), pa.py_buffer(values.buffer.data)]
    everything = pa.Array.from_buffers(pa.large_binary(), max(0, 2 * count - 1), parts)
    return everything.take(pa.array(np.arange(0, 2 * count, 2), mask=nulls))


def _bytes(kind: pa.DataType, values: Rows, nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """Text or bytes. Invalid UTF-8, which Spark does not reject, becomes U+FFFD, as in Spark."""
    content = binary_array(values, nulls)
    if kind == pa.binary():
        return content.cast(kind)
    try:
        return content.cast(pa.large_string()).cast(kind)
    except pa.ArrowInvalid:
        return pa.array([text and text.decode(errors="replace") for text in content.to_pylist()], kind)


def _big_integers(values: Rows, nulls: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Big-endian integers of 1 to 16 bytes as 16 bytes each, little-endian."""
    values.check(~nulls & ((values.sizes < 1) | (values.sizes > _DECIMAL_BYTES)), "a decimal of {size} bytes")
    index = np.arange(_DECIMAL_BYTES)
    last = (values.starts + values.sizes - 1)[:, np.newaxis]
    there = index < values.sizes[:, np.newaxis]
    digits = np.where(there, values.buffer.data[np.where(there, last - index, 0)], 0)
    negative = values.buffer.data[np.where(nulls, 0, values.starts)] > 127
    return np.where(there, digits, np.where(negative, 0xFF, 0)[:, np.newaxis]).astype(np.uint8)


def _decimals(kind: Decimal, integers: NDArray[np.integer], nulls: NDArray[np.bool_]) -> pa.Array:
    parts = [_validity(nulls), pa.py_buffer(np.ascontiguousarray(integers))]
    return pa.Array.from_buffers(kind.arrow, nulls.size, parts)


def _intervals(values: Rows, nulls: NDArray[np.bool_]) -> pa.Array:
    values.check(~nulls & (values.sizes != _INTERVAL_BYTES), "an interval of {size} bytes")
    present = values.take(np.flatnonzero(~nulls)).starts
    parts = (("<i4", 0), ("<i4", 4), ("<i8", 8))
    columns = [pa.array(values.buffer.read(stored, present + at)) for stored, at in parts]
    return _expand(pa.StructArray.from_arrays(columns, fields=list(CalendarInterval().arrow)), nulls)


def _variants(values: Rows, nulls: NDArray[np.bool_]) -> pa.Array:
    present = values.take(np.flatnonzero(~nulls))
    present.check(present.sizes < 4, "a variant of {size} bytes")
    lengths = values.buffer.read("<i4", present.starts).astype(np.int64)
    present.check((lengths < 0) | (lengths > present.sizes - 4), "the value of a variant exceeds its {size} bytes")
    value = Rows(values.buffer, present.starts + 4, lengths)
    metadata = Rows(values.buffer, value.starts + lengths, present.sizes - 4 - lengths)
    columns = [_bytes(pa.binary(), part) for part in (value, metadata)]
    return _expand(pa.StructArray.from_arrays(columns, fields=list(Variant().arrow)), nulls)


def _arrays(kind: Array, values: Rows, nulls: NDArray[np.bool_]) -> pa.Array:
    offsets, elements = _elements(kind.element, values, nulls)
    return pa.Array.from_buffers(kind.arrow, nulls.size, [_validity(nulls), offsets], children=[elements])


def _maps(kind: Map, values: Rows, nulls: NDArray[np.bool_]) -> pa.Array:
    values.check(~nulls & (values.sizes < 8), "a map of {size} bytes")
    sizes = np.zeros(len(values), np.int64)
    sizes[~nulls] = values.buffer.words(values.starts[~nulls])
    values.check(~nulls & ((sizes < 0) | (sizes > values.sizes - 8)), "the keys of a map exceed its {size} bytes")
    keys = Rows(values.buffer, values.starts + 8, sizes)
    items = Rows(values.buffer, keys.starts + sizes, np.where(nulls, 0, values.sizes - 8 - sizes))
    offsets, key_elements = _elements(kind.key, keys, nulls)
    item_offsets, item_elements = _elements(kind.value, items, nulls)
    counts = np.diff(_counted(offsets))
    values.check(counts != np.diff(_counted(item_offsets)), "a map with different numbers of keys and values")
    if key_elements.null_count:
        # Such a map would crash Arrow without an exception.
        of_map = np.repeat(np.arange(len(values)), counts)
        with_null = np.zeros(len(values), np.bool_)
        with_null[of_map[np.asarray(key_elements.is_null())]] = True
        values.check(with_null, "a map of {size} bytes with a null key")
    entries = pa.StructArray.from_arrays(
        [key_elements, item_elements], fields=[kind.arrow.key_field, kind.arrow.item_field]
    )
    return pa.Array.from_buffers(kind.arrow, nulls.size, [_validity(nulls), offsets], children=[entries])


def _elements(kind: SparkType, arrays: Rows, nulls: NDArray[np.bool_]) -> tuple[pa.Buffer, pa.Array]:
    """Arrow's offsets of arrays, and all their elements. A null has none."""
    arrays.check(~nulls & (arrays.sizes < 8), "an array of {size} bytes")
    counts = np.zeros(len(arrays), np.int64)
    counts[~nulls] = arrays.buffer.words(arrays.starts[~nulls])
    # Elements have at least one byte: reject a larger number before the multiplication overflows.
    arrays.check((counts < 0) | (counts > arrays.sizes), "the elements of an array exceed its {size} bytes")
    header = 8 + (counts + 63) // 64 * 8
    needed = header + counts * kind.width
    arrays.check(~nulls & (needed > arrays.sizes), "the elements of an array exceed its {size} bytes")
    offsets = np.concatenate(([0], np.cumsum(counts)))
    starts, sizes = np.repeat(arrays.starts, counts), np.repeat(arrays.sizes, counts)
    index = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    within = Rows(arrays.buffer, starts, sizes)
    at = starts + np.repeat(header, counts) + index * kind.width
    elements = _column(kind, at, null_bits(within, starts + 8, index), within)
    return pa.py_buffer(offsets.astype(np.int32)), elements


def _counted(offsets: pa.Buffer) -> NDArray[np.int32]:
    return np.frombuffer(offsets, np.int32)


def _expand(present: pa.Array, nulls: NDArray[np.bool_]) -> pa.Array:
    """An array with nulls, from its non-null values."""
    if len(present) == nulls.size:
        return present
    return present.take(pa.array(np.cumsum(~nulls) - 1, mask=nulls))


def _validity(nulls: NDArray[np.bool_]) -> pa.Buffer | None:
    return pc.invert(pa.array(nulls)).buffers()[1] if nulls.any() else None
