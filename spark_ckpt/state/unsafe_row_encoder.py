"""Encoding of UnsafeRows, a whole column at a time: the inverse of `unsafe_row`.

The bytes are those of Spark's own writers, since state keys are compared by their bytes: values in the order of the
fields, each in a multiple of 8 bytes, and zeros in all gaps (`GenerateUnsafeProjection`, `UnsafeRowWriter`,
`UnsafeArrayWriter`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt.format.decimals import twos_complement, unscaled_of
from spark_ckpt.spark_files.types import Array, Bytes, Decimal, Fixed, Map, Null, SparkType, Struct
from spark_ckpt.state.rows import Buffer, Piece, Rows

_DECIMAL_BYTES = 16
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class _Values(NamedTuple):
    """Values of variable length.

    Args:
        data: all bytes, uint8.
        starts: start of each value, int64.
        sizes: bytes of each value, int64; 0 for a null.
        reserved: bytes that each value takes in a row, int64.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    reserved: NDArray[np.int64]


def encodable(kind: SparkType) -> bool:
    """True if `encode_rows` supports a type."""
    match kind:
        case Fixed() | Bytes() | Decimal() | Null():
            return True
        case Array():
            return encodable(kind.element)
        case Map():
            return encodable(kind.key) and encodable(kind.value)
        case Struct():
            return all(encodable(field) for field in kind.types)
    return False


def encode_rows(kind: Struct, rows: pa.StructArray, store: str = "") -> Rows:
    """The rows of non-null structs, one after the other.

    Args:
        kind: type of the rows; `encodable`.
        rows: array of its Arrow type.
        store: the store, for errors of a later decoding.

    Raises:
        TypeError: the type is not `encodable`.
    """
    data, _, sizes = _encode(kind, rows)
    return rows_of(data, sizes, store)


def rows_of(data: NDArray[np.uint8], sizes: NDArray[np.int64], store: str) -> Rows:
    """Rows that lie one after the other in memory."""
    buffer = Buffer.of([Piece("memory", 0, 0, data.tobytes())], store)
    return Rows(buffer, np.cumsum(sizes) - sizes, sizes)


def _encode(kind: Struct, rows: pa.StructArray) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    columns = rows.flatten() if kind.types else []
    count = len(rows)
    values = [_values(field, column, in_row=True) for field, column in zip(kind.types, columns, strict=True)]
    sizes = np.full(count, kind.fixed_bytes, np.int64)
    for value in values:
        if value is not None:
            sizes += value.reserved
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    words = out.view("<i8")
    cursor = np.full(count, kind.fixed_bytes, np.int64)
    for index, (field, column, value) in enumerate(zip(kind.types, columns, values, strict=True)):
        nulls = _nulls(column)
        out[starts[nulls] + index // 8] |= np.uint8(1 << index % 8)
        slots = (starts + (kind.null_bytes + 8 * index)) // 8
        if value is None:
            words[slots] = _slots(field, column)
            continue
        there = value.reserved > 0 if _keeps_offset(field) else ~nulls
        words[slots[there]] = cursor[there] << 32 | value.sizes[there]
        _copy(out, starts + cursor, value)
        cursor += value.reserved
    return out, starts, sizes


def _nulls(column: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = np.asarray(column.is_null())
    return nulls


def _keeps_offset(kind: SparkType) -> bool:
    """True if a row keeps the place of a null for a later update (`UnsafeRowWriter.write` of a `Decimal`)."""
    return isinstance(kind, Decimal) and not kind.is_long


def _slots(kind: SparkType, column: pa.Array) -> NDArray[np.int64]:
    """Content of the slots of a type without bytes of variable length; 0 for a null."""
    match kind:
        case Null():
            return np.zeros(len(column), np.int64)
        case Decimal():
            return _unscaled_longs(column)
        case Fixed():
            return _bits(kind, column).astype(np.uint64).view(np.int64)
    raise TypeError(f"no encoding of {kind}")


def _bits(kind: Fixed, column: pa.Array) -> NDArray[np.unsignedinteger]:
    """The stored bytes of fixed-width values as unsigned integers of their width; 0 for a null."""
    stored = np.dtype(kind.stored)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = column.view(pa.int32() if stored.itemsize == 4 else pa.int64())
    values = np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), stored.newbyteorder("="))
    bits: NDArray[np.unsignedinteger] = np.ascontiguousarray(values).view(_UNSIGNED[stored.itemsize])
    return bits


def _unscaled_longs(column: pa.Array) -> NDArray[np.int64]:
    """Unscaled values of at most 18 digits: the low words of Arrow's 16 bytes."""
    if not len(column):  # its buffer may be missing
        return np.empty(0, np.int64)
    words = np.frombuffer(column.buffers()[1], "<i8").reshape(-1, 2)[column.offset : column.offset + len(column), 0]
    longs: NDArray[np.int64] = np.where(_nulls(column), 0, words)
    return longs


# ---- values of variable length ---------------------------------------------------------------------------------------


def _values(kind: SparkType, column: pa.Array, *, in_row: bool) -> _Values | None:
    """Values of variable length; None for a type without."""
    match kind:
        case Null() | Fixed():
            return None
        case Decimal():
            return None if kind.is_long else _big_decimals(column, in_row)
        case Bytes():
            return _bytes(column)
        case Struct():
            present = column.drop_null()
            data, starts, sizes = _encode(kind, present)
            return _spread(data, starts, sizes, _nulls(column))
        case Array():
            present = column.drop_null()
            data, sizes = _arrays(kind.element, present.flatten(), _counts(present))
            return _spread(data, np.cumsum(sizes) - sizes, sizes, _nulls(column))
        case Map():
            return _maps(kind, column)
    raise TypeError(f"no encoding of {kind}")


def _counts(lists: pa.Array) -> NDArray[np.int64]:
    counts: NDArray[np.int64] = np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), np.int64)
    return counts


def _padded(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    padded: NDArray[np.int64] = (sizes + 7) // 8 * 8
    return padded


def _spread(
    data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64], nulls: NDArray[np.bool_]
) -> _Values:
    """Values with nulls, from those that are not null."""
    all_starts, all_sizes = np.zeros(nulls.size, np.int64), np.zeros(nulls.size, np.int64)
    all_starts[~nulls], all_sizes[~nulls] = starts, sizes
    return _Values(data, all_starts, all_sizes, _padded(all_sizes))


def _bytes(column: pa.Array) -> _Values:
    none = np.empty(0, np.int64)
    if not len(column):  # its buffers may be missing
        return _Values(np.empty(0, np.uint8), none, none, none)
    content = column.cast(pa.large_string() if pa.types.is_string(column.type) else pa.large_binary())
    _, offsets, data = content.buffers()
    edges = np.frombuffer(offsets, np.int64)[content.offset : content.offset + len(content) + 1]
    stored = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    sizes = np.where(_nulls(column), 0, np.diff(edges))
    return _Values(stored, edges[:-1], sizes, _padded(sizes))


def _big_decimals(column: pa.Array, in_row: bool) -> _Values:
    # Python's arithmetic rounds to 28 digits.
    contents = [b"" if value is None else twos_complement(unscaled_of(value)[0]) for value in column.to_pylist()]
    sizes = np.array([len(content) for content in contents], np.int64)
    # Rows keep 16 bytes for each, nulls included; arrays do not (`UnsafeRowWriter.write`, `UnsafeArrayWriter.write`).
    reserved = np.full(sizes.size, _DECIMAL_BYTES, np.int64) if in_row else _padded(sizes)
    return _Values(np.frombuffer(b"".join(contents), np.uint8), np.cumsum(sizes) - sizes, sizes, reserved)


def _arrays(
    kind: SparkType, elements: pa.Array, counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Arrays of these numbers of elements, one after the other, and the bytes of each."""
    first = np.cumsum(counts) - counts
    header = 8 + (counts + 63) // 64 * 8
    fixed = header + _padded(counts * kind.width)
    values = _values(kind, elements, in_row=False)
    reserved = np.zeros(len(elements), np.int64) if values is None else values.reserved
    before = np.cumsum(reserved) - reserved
    edges = np.append(before, reserved.sum())
    sizes = fixed + edges[first + counts] - edges[first]
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    out.view("<i8")[starts // 8] = counts
    owner = np.repeat(np.arange(counts.size), counts)
    index = np.arange(len(elements)) - first[owner]
    nulls = _nulls(elements)
    # Several elements may share a byte of null bits.
    np.bitwise_or.at(out, starts[owner[nulls]] + 8 + index[nulls] // 8, (1 << index[nulls] % 8).astype(np.uint8))
    at = starts[owner] + header[owner] + index * kind.width
    if values is None:
        slots = _bits(kind, elements) if isinstance(kind, Fixed) else _slots(kind, elements)
        width = slots.dtype.itemsize
        stored = np.ascontiguousarray(slots).view(np.uint8).reshape(-1, width)
        out[at[:, np.newaxis] + np.arange(width)] = stored
        return out, sizes
    places = fixed[owner] + before - edges[first[owner]]
    words = out.view("<i8")
    words[at[~nulls] // 8] = places[~nulls] << 32 | values.sizes[~nulls]
    _copy(out, starts[owner] + places, values)
    return out, sizes


def _maps(kind: Map, column: pa.Array) -> _Values:
    present = column.drop_null()
    # Not by a cast to lists: PyArrow 26 loses elements of a map without values (`void`) within a map.
    edges = np.asarray(present.offsets, np.int64)
    counts, first, length = np.diff(edges), int(edges[0]), int(edges[-1] - edges[0])
    keys, items = present.keys.slice(first, length), present.items.slice(first, length)
    (key_data, key_sizes), (item_data, item_sizes) = (
        _arrays(part, elements, counts) for part, elements in ((kind.key, keys), (kind.value, items))
    )
    sizes = 8 + key_sizes + item_sizes
    starts = np.cumsum(sizes) - sizes
    out = np.zeros(int(sizes.sum()), np.uint8)
    out.view("<i8")[starts // 8] = key_sizes
    for data, lengths, at in ((key_data, key_sizes, starts + 8), (item_data, item_sizes, starts + 8 + key_sizes)):
        _copy(out, at, _Values(data, np.cumsum(lengths) - lengths, lengths, lengths))
    return _spread(out, starts, sizes, _nulls(column))


def _copy(out: NDArray[np.uint8], at: NDArray[np.int64], values: _Values) -> None:
    """Copies values to their places."""
    sizes = values.sizes
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    out[np.repeat(at, sizes) + within] = values.data[np.repeat(values.starts, sizes) + within]
