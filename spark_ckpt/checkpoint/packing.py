"""Compressed columns in `_metadata`: base64 of zlib, with a limit on decompressed bytes."""

from __future__ import annotations

import base64
import zlib

from spark_ckpt.checkpoint.errors import MetadataTooLargeError

MAX_BYTES = 64 << 20
"""Limit in bytes for all decompressed columns of one `_metadata`: three to five million segments."""


SEGMENT_BYTES = 4 + 8 + 4 + 4 + 4 + 1
"""Most bytes of a segment in these columns, besides filters: age, size, shared handle, merged versions, compressed,
ordered."""

SUBTASK_BYTES = 4
"""Bytes of a subtask in these columns: its number of segments."""


class Packing:
    """Compression of the texts of one `_metadata`, within the limit that its readers accept.

    Args:
        most: limit in bytes for all texts together, before compression; by default `MAX_BYTES`.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = self._left = MAX_BYTES if most is None else most

    def packed(self, data: bytes) -> str:
        """Compressed text of these bytes.

        Raises:
            MetadataTooLargeError: limit exceeded.
        """
        self._left -= len(data)
        if self._left < 0:
            raise MetadataTooLargeError(self._most)
        return packed(data)


def packed(data: bytes) -> str:
    """Compressed text of these bytes."""
    return base64.b64encode(zlib.compress(data, 1)).decode()


class Unpacking:
    """Decompression of the texts of one `_metadata`, with a limit that bounds memory.

    Args:
        most: limit in bytes for all decompressed texts together; by default `MAX_BYTES`.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = self._left = MAX_BYTES if most is None else most

    def whole(self, text: str) -> bytes:
        """Decompressed bytes of a text.

        Raises:
            ValueError: malformed, truncated, or above the limit.
        """
        stream = self.stream(text)
        data = stream.read_at_most(self._left)
        stream.finish()
        return data

    def stream(self, text: str) -> PackedStream:
        """Stream over a text.

        Raises:
            ValueError: not base64.
        """
        return PackedStream(base64.b64decode(text, validate=True), self)

    def take(self, size: int) -> None:
        """Count `size` bytes against the limit.

        Raises:
            ValueError: limit exceeded.
        """
        if size > self._left:
            raise ValueError(f"the compressed texts exceed the limit of {self._most} bytes")
        self._left -= size


class PackedStream:
    """Stream over a compressed text.

    Args:
        data: compressed bytes.
        unpacking: owner of the limit.
    """

    def __init__(self, data: bytes, unpacking: Unpacking) -> None:
        self._rest = data
        self._unpacking = unpacking
        self._inflater = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """Read exactly `size` bytes.

        Raises:
            ValueError: truncated, corrupt, or above the limit.
        """
        self._unpacking.take(size)
        data = self._inflate(size) if size else b""
        if len(data) != size:
            raise ValueError(f"a compressed text ends after {len(data)} of {size} bytes")
        return data

    def read_at_most(self, size: int) -> bytes:
        """Read the rest, at most `size` bytes.

        Raises:
            ValueError: more than `size` bytes, or corrupt.
        """
        data = self._inflate(size + 1)
        self._unpacking.take(len(data))
        return data

    def finish(self) -> None:
        """Check that the stream is at its end.

        Raises:
            ValueError: trailing bytes, or truncated.
        """
        if self._inflate(1) or not self._inflater.eof:
            raise ValueError("a compressed text has trailing bytes or is truncated")

    def _inflate(self, most: int) -> bytes:
        if self._inflater.eof:
            return b""
        try:
            data = self._inflater.decompress(self._rest, most)
        except zlib.error as e:
            raise ValueError(str(e)) from e
        self._rest = self._inflater.unconsumed_tail
        return data
