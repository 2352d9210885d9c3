"""Many rows in one buffer, and the way back from a position in it to the state file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.state.errors import StateRowError


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a state file, in a buffer that is put together from several.

    Args:
        path: the file.
        offset: where they begin in it.
        key_group: the key group whose rows they are.
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
        data: uint8, all of them.
        pieces: where they are from, in their order in `data`.
        store: the store, for errors.
    """

    data: NDArray[np.uint8]
    pieces: Sequence[Piece]
    store: str
    _starts: NDArray[np.int64] = field(repr=False)

    @classmethod
    def of(cls, pieces: Sequence[Piece], store: str) -> Buffer:
        """The pieces one after the other."""
        starts = np.cumsum([0, *(len(piece.data) for piece in pieces)])[:-1]
        return cls(np.frombuffer(b"".join(piece.data for piece in pieces), np.uint8), pieces, store, starts)

    def read(self, stored: str, at: NDArray[np.int64]) -> NDArray[np.generic]:
        """The values at positions that are known to lie in the buffer, whether aligned or not.

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
        """The error about what is at a position."""
        index = int(np.searchsorted(self._starts, position, "right")) - 1
        piece = self.pieces[index]
        offset = piece.offset + position - int(self._starts[index])
        return StateRowError(piece.path, offset, self.store, piece.key_group, reason)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows in a buffer, ascending by position.

    Args:
        buffer: their bytes.
        starts: int64, where each begins.
        sizes: int64, bytes of each.
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
            wrong: which are.
            reason: what is then wrong; `{size}` stands for the bytes of the row.

        Raises:
            StateRowError: the first row that is.
        """
        if wrong.any():
            first = int(np.argmax(wrong))
            raise self.buffer.fail(int(self.starts[first]), reason.format(size=int(self.sizes[first])))
