"""Files as this reader sees them: named bytes, read by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class RandomAccess(Protocol):
    """A file, or an object of an object store."""

    @property
    def name(self) -> str:
        """Name for error messages."""
        ...

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`, all of them inside the file."""
        ...


@dataclass(frozen=True, slots=True)
class InMemory:
    """A file whose bytes are in memory, as Flink keeps small files inside `_metadata`."""

    name: str
    content: bytes

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.content)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes from `offset`."""
        return self.content[offset : offset + length]


class Window:
    """Reads ahead in a file, so that neighbouring blocks take one request.

    Args:
        file: the file.
        ahead: bytes per request, at least.
    """

    __slots__ = ("_ahead", "_content", "_file", "_start")

    def __init__(self, file: RandomAccess, ahead: int) -> None:
        self._file = file
        self._ahead = ahead
        self._start = 0
        self._content = b""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`, all of them inside the file."""
        at = offset - self._start
        if at < 0 or at + length > len(self._content):
            self._content = self._file.read(offset, min(max(length, self._ahead), self._file.size - offset))
            self._start, at = offset, 0
        return self._content[at : at + length]
