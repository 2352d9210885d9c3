"""Many rows in one buffer, with a mapping from positions back to state files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.state.errors import StateRowError


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a state file in a joined buffer.

    Args:
        path: the file.
        offset: their position in the file.
        key_group: key group of the rows.
        data: the bytes.
    """

    path: str
    offset: int
    key_group: int
    data: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """The bytes of many rows.

    Args:
        data: all bytes, uint8.
        pieces: their origins, in the order of `data`.
        store: the store, for errors.
    """

    data: NDArray[np.uint8]
    pieces: Sequence[Piece]
    store: str
    _starts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, pieces: Sequence[Piece], store: str) -> Buffer:
        """The concatenated pieces."""
        starts = np.cumsum([0, *(len(piece.data) for piece in pieces)])[:-1]
        return cls(np.frombuffer(b"".join(piece.data for piece in pieces), np.uint8), pieces, store, starts)

    def read(self, stored: str, at: NDArray[np.int64]) -> NDArray[np.generic]:
        """The values at positions within the buffer, aligned or not.

        Args:
            stored: numpy's name of their type.
            at: positions.
        """
        kind = np.dtype(stored)
        if not at.size:
            return np.empty(0, kind)
        everywhere = np.ndarray((self.data.size - kind.itemsize + 1,), kind, self.data.data, strides=(1,))
        values: NDArray[np.generic] = everywhere[at]
        return values

    def words(self, at: NDArray[np.int64]) -> NDArray[np.int64]:
        """The 8-byte integers at positions."""
        return self.read("<i8", at).view(np.int64)

    def fail(self, position: int, reason: str) -> StateRowError:
        """The error for a position."""
        index = int(np.searchsorted(self._starts, position, "right")) - 1
        piece = self.pieces[index]
        offset = piece.offset + position - int(self._starts[index])
        return StateRowError(piece.path, offset, self.store, piece.key_group, reason)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows in a buffer, ascending by position.

    Args:
        buffer: their bytes.
        starts: start of each row, int64.
        sizes: bytes of each row, int64.
    """

    buffer: Buffer
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def __len__(self) -> int:
        """Number of rows."""
        return self.starts.size

    def take(self, which: NDArray[np.int64]) -> Rows:
        """Some of the rows, by ascending index."""
        return Rows(self.buffer, self.starts[which], self.sizes[which])

    def check(self, wrong: NDArray[np.bool_], reason: str) -> None:
        """Check that no row is malformed.

        Args:
            wrong: mask of malformed rows.
            reason: the error; `{size}` stands for the bytes of the row.

        Raises:
            StateRowError: for the first malformed row.
        """
        if wrong.any():
            first = int(np.argmax(wrong))
            raise self.buffer.fail(int(self.starts[first]), reason.format(size=int(self.sizes[first])))
