"""Bytes of many rows, with a position in each that all readers advance at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Positions: TypeAlias = NDArray[np.int64]
"""A position, a length or an index for each row."""


class NotPlainError(Exception):
    """Rows that have to be read one by one."""


class Column(NamedTuple):
    """Values of a part: as Arrow, and their hashes if they can be keys."""

    array: pa.Array
    hashes: NDArray[np.uint32] | None = None


class ByteRows:
    """Bytes of many rows, with a position in each.

    Args:
        data: the bytes.
        at: position in each row.
        ends: end of each row.
    """

    def __init__(self, data: NDArray[np.uint8], at: Positions, ends: Positions) -> None:
        self._data = data
        self.at = at
        self.ends = ends

    @classmethod
    def of(cls, rows: Sequence[bytes]) -> ByteRows:
        """The rows, at their start."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ends: Positions = np.cumsum(lengths)
        return cls(np.frombuffer(b"".join(rows), np.uint8), ends - lengths, ends)

    @classmethod
    def within(cls, blocks: Sequence[tuple[bytes, Sequence[int]]]) -> ByteRows:
        """The rows in blocks of bytes, each with the end of each row in it."""
        ends: list[Positions] = []
        begin = 0
        for content, ends_in_it in blocks:
            ends.append(np.array(ends_in_it, np.int64) + begin)
            begin += len(content)
        joined = np.concatenate(ends)
        at = np.concatenate([np.zeros(1, np.int64), joined[:-1]])
        return cls(np.frombuffer(b"".join(content for content, _ in blocks), np.uint8), at, joined)

    def some(self, which: Positions) -> ByteRows:
        """Some of the rows, by index."""
        return ByteRows(self._data, self.at[which], self.ends[which])

    def skip(self, lengths: Positions | int) -> None:
        """Advance each position.

        Raises:
            NotPlainError: a row ends before.
        """
        at = self.at + lengths
        if (at > self.ends).any():
            raise NotPlainError
        self.at = at

    def numbers(self, kind: str) -> NDArray[np.generic]:
        """The next number of each row, in native order.

        Raises:
            NotPlainError: a row ends before.
        """
        at = self.at
        self.skip(np.dtype(kind).itemsize)
        return self.numbers_at(kind, at)

    def numbers_at(self, kind: str, at: Positions) -> NDArray[np.generic]:
        """Numbers at positions inside the rows."""
        dtype = np.dtype(kind)
        native = dtype.newbyteorder("=")
        if not at.size:
            return np.empty(0, native)
        everywhere = np.ndarray((self._data.size - dtype.itemsize + 1,), dtype, self._data.data, strides=(1,))
        values: NDArray[np.generic] = everywhere[at].astype(native)
        return values

    def ragged(self, lengths: Positions) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The next bytes of each row: offsets, and all bytes.

        Raises:
            NotPlainError: a row ends before.
        """
        at = self.at
        self.skip(lengths)
        return self.ragged_at(at, lengths)

    def ragged_at(self, at: Positions, lengths: Positions) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Bytes at positions inside the rows: offsets, and all bytes."""
        offsets = np.zeros(lengths.size + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(at - offsets[:-1], lengths) + np.arange(offsets[-1])
        return offsets.astype(np.int32), self._data[places]

    def check_end(self) -> None:
        """Check that all rows are read to their end.

        Raises:
            NotPlainError: one is not.
        """
        if (self.at != self.ends).any():
            raise NotPlainError
