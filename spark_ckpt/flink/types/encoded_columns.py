"""Bytes of many rows at once: parts of a fixed width as arrays, others as Arrow's binary columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Fixed: TypeAlias = NDArray[np.uint8]
"""Bytes of a fixed width: a row of the array for each row."""

Part: TypeAlias = "Fixed | pa.LargeBinaryArray"
"""Bytes of each row."""

Hashes: TypeAlias = NDArray[np.uint32]
"""Java's `hashCode` of each row."""

Mask: TypeAlias = NDArray[np.bool_]
Lengths: TypeAlias = NDArray[np.int64]

NOTHING = pa.scalar(b"", pa.large_binary())


class BadValueError(Exception):
    """A value that does not fit its serializer; the caller adds the state and the column.

    Attributes:
        index: index of the row in the array; None if unknown.
        reason: the problem.
    """

    def __init__(self, index: int | None, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


class Encoded(NamedTuple):
    """Values of a column as a serializer writes them.

    Args:
        parts: bytes of each row, in parts that follow each other.
        hashes: computes the hashes; None if the values cannot be keys.
    """

    parts: tuple[Part, ...]
    hashes: Callable[[], Hashes] | None = None


def fixed(values: NDArray[Any], kind: str) -> Fixed:
    """Numbers as bytes of a NumPy type, such as `>i8`."""
    wide = np.ascontiguousarray(values.astype(kind))
    return wide.view(np.uint8).reshape(len(values), wide.dtype.itemsize)


def constant(content: bytes, rows: int) -> Fixed:
    """The same bytes in each row."""
    return np.broadcast_to(np.frombuffer(content, np.uint8), (rows, len(content)))


def lengths_of(parts: Sequence[Part], rows: int) -> Lengths:
    """Bytes of each row in all parts together."""
    total = np.zeros(rows, np.int64)
    for part in parts:
        total += part.shape[1] if isinstance(part, np.ndarray) else pc.binary_length(part).to_numpy()
    return total


def ragged(part: Part) -> pa.LargeBinaryArray:
    """The part as a binary column."""
    if not isinstance(part, np.ndarray):
        return part
    rows, width = part.shape
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    content = np.ascontiguousarray(part).reshape(-1)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    )


def of_buffers(offsets: Lengths, content: NDArray[np.uint8]) -> pa.LargeBinaryArray:
    """Binary column of offsets and bytes."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def joined(parts: Sequence[Part], rows: int) -> Part:
    """All parts of each row as one."""
    merged: list[Part] = []
    for part in parts:
        if isinstance(part, np.ndarray):
            if part.shape[1] == 0:
                continue
            if merged and isinstance(merged[-1], np.ndarray):
                merged[-1] = np.concatenate([merged[-1], part], axis=1)
                continue
        merged.append(part)
    if not merged:
        return np.empty((rows, 0), np.uint8)
    if len(merged) == 1:
        return merged[0]
    return pc.binary_join_element_wise(*map(ragged, merged), NOTHING)


def content_of(array: pa.Array) -> tuple[Lengths, NDArray[np.uint8]]:
    """Offsets and bytes of a text or binary column, from 0. A null has no bytes."""
    if array.null_count:
        array = array.fill_null(b"" if pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type) else "")
    wide = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    _, offsets_buffer, content = array.buffers()
    if offsets_buffer is None or not len(array):
        return np.zeros(len(array) + 1, np.int64), np.empty(0, np.uint8)
    all_offsets = np.frombuffer(offsets_buffer, np.int64 if wide else np.int32)
    offsets = all_offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)
    if content is None:
        return offsets - offsets[0], np.empty(0, np.uint8)
    return offsets - offsets[0], np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]]


def nulls_of(array: pa.Array) -> Mask:
    """Where values are null."""
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    return np.asarray(array.is_null())


def refuse_nulls(array: pa.Array, what: str = "a null, which its serializer cannot write") -> None:
    """Refuse nulls.

    Raises:
        BadValueError: there is a null.
    """
    if array.null_count:
        raise BadValueError(int(np.flatnonzero(nulls_of(array))[0]), what)


def refuse(where: Mask, what: str) -> None:
    """Refuse rows.

    Raises:
        BadValueError: there is such a row.
    """
    if where.any():
        raise BadValueError(int(np.flatnonzero(where)[0]), what)


def spread(part: Part, present: Mask) -> pa.LargeBinaryArray:
    """Bytes of some rows, spread over all rows; the others have none.

    Args:
        part: bytes of the present rows.
        present: which rows they are.
    """
    places = pa.array(np.cumsum(present) - 1, mask=~present)
    return ragged(part).take(places).fill_null(b"")
