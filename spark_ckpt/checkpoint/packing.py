"""Compressed columns in `_metadata`: base64 of zlib, read within a limit."""

from __future__ import annotations

import base64
import zlib

MOST_BYTES = 64 << 20
"""Limit of the decompressed texts of one `_metadata`: the columns of five million segments."""


def packed(data: bytes) -> str:
    """The text of these bytes."""
    return base64.b64encode(zlib.compress(data, 1)).decode()


class Unpacking:
    """Decompresses the texts of one `_metadata`. A text that says more than it should costs no memory.

    Args:
        most: bytes that all texts together may decompress to.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = self._left = most

    def whole(self, text: str) -> bytes:
        """The bytes of a text.

        Raises:
            ValueError: it is no such text, is cut off, or exceeds the limit.
        """
        stream = self.stream(text)
        data = stream.read_at_most(self._left)
        stream.finish()
        return data

    def stream(self, text: str) -> PackedStream:
        """A text, to be read in parts.

        Raises:
            ValueError: it is no base64.
        """
        return PackedStream(base64.b64decode(text, validate=True), self)

    def take(self, size: int) -> None:
        """Counts so many bytes.

        Raises:
            ValueError: they exceed the limit.
        """
        if size > self._left:
            raise ValueError(f"compressed texts of more than {self._most} bytes, the most that are read")
        self._left -= size


class PackedStream:
    """A compressed text from its beginning on.

    Args:
        data: the compressed bytes.
        unpacking: counts what is read.
    """

    def __init__(self, data: bytes, unpacking: Unpacking) -> None:
        self._rest = data
        self._unpacking = unpacking
        self._inflater = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """The next `size` bytes.

        Raises:
            ValueError: there are fewer, they exceed the limit, or they are damaged.
        """
        self._unpacking.take(size)
        data = self._inflate(size) if size else b""
        if len(data) != size:
            raise ValueError(f"a compressed text ends after {len(data)} of {size} bytes")
        return data

    def read_at_most(self, size: int) -> bytes:
        """All that is left, if that is no more than `size` bytes.

        Raises:
            ValueError: there are more, or they are damaged.
        """
        data = self._inflate(size + 1)
        self._unpacking.take(len(data))
        return data

    def finish(self) -> None:
        """Makes sure that nothing is left.

        Raises:
            ValueError: there is more, or the end is missing.
        """
        if self._inflate(1) or not self._inflater.eof:
            raise ValueError("a compressed text is longer than it should be, or is cut off")

    def _inflate(self, most: int) -> bytes:
        if self._inflater.eof:
            return b""
        try:
            data = self._inflater.decompress(self._rest, most)
        except zlib.error as e:
            raise ValueError(str(e)) from e
        self._rest = self._inflater.unconsumed_tail
        return data
