"""Reader of primitives from a stream of any length, with one piece at a time in memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.metadata.data_input import DataInput

UNKNOWN_END = sys.maxsize
"""End of a stream of unknown length, such as a compressed one."""


class StreamInput(DataInput):
    """Stream with a read position. Keeps only the bytes read since `mark`, and the piece at the position.

    Args:
        pieces: bytes from `position` on, in pieces of any size.
        path: name of the stream, for errors.
        position: start of the first piece.
        end: end of the last piece.
    """

    __slots__ = ("_mark", "_pieces", "_start")

    def __init__(self, pieces: Iterator[bytes], path: str, position: int = 0, end: int = UNKNOWN_END) -> None:
        super().__init__(b"", path)
        self._pieces = pieces
        self._start = self._mark = self.position = position
        self._end = end

    def at_end(self) -> bool:
        """True at the end of the stream."""
        return self.remaining == 0 or not self._has(1)

    def available(self, max_bytes: int) -> int:
        """Number of bytes that follow, at most `max_bytes`. Loads them into memory."""
        max_bytes = min(max_bytes, self.remaining)
        return max_bytes if self._has(max_bytes) else self._start + len(self._data) - self.position

    def peek(self, length: int) -> bytes:
        """Bytes that follow, which `available` has found, without reading them."""
        at = self.position - self._start
        return self._data[at : at + length]

    def mark(self) -> int:
        """Current position. Bytes from here on are kept until the next mark, for `since`."""
        self._mark = self.position
        return self.position

    def since(self, position: int) -> bytes:
        """Bytes read since a position at or after the last mark."""
        return self._data[position - self._start : self.position - self._start]

    def skip_to_end(self, field: str) -> None:
        """Skip all remaining bytes; they are kept since the last mark."""
        self._advance(self.remaining, field)

    def skip(self, length: int, field: str) -> None:
        """Skip `length` bytes."""
        while length:
            step = min(length, 1 << 16)
            self.mark()
            self._advance(step, field)
            length -= step

    def _failure(self, offset: int, field: str, reason: str) -> SparkCkptError:
        return StateStreamFormatError(self._path, offset, field, reason)

    def _advance(self, length: int, field: str) -> int:
        if not 0 <= length <= self.remaining:
            self.fail(field, f"{length} bytes needed, {self.remaining} left")
        if not self._has(length):
            self.fail(field, f"{length} bytes needed, {self._start + len(self._data) - self.position} left")
        at = self.position - self._start
        self.position += length
        return at

    def _has(self, length: int) -> bool:
        """True if `length` bytes follow. Loads them into memory."""
        missing = self.position + length - self._start - len(self._data)
        if missing <= 0:
            return True
        tail = self._data[min(self._mark, self.position) - self._start :]
        self._start = min(self._mark, self.position)
        read = [tail]
        while missing > 0 and (piece := next(self._pieces, None)) is not None:
            read.append(piece)
            missing -= len(piece)
        self._data = b"".join(read)
        return missing <= 0
