"""Checksum files that Hadoop writes beside files on a local disk (`.<name>.crc`).

Spark writes them for its logs and does not read them, since it opens files through `FileContext`. So a mismatch stops
no query. It tells damage of content that has no other redundancy.
"""

from __future__ import annotations

import struct
import zlib

_HEADER = struct.Struct(">4si")
_MAGIC = b"crc\0"


class ChecksumFile:
    """Checksums of a file, compared with its content chunk by chunk.

    Args:
        content: content of the checksum file; one that is malformed tells nothing.
    """

    def __init__(self, content: bytes) -> None:
        magic, self._chunk = _HEADER.unpack_from(content) if len(content) >= _HEADER.size else (b"", 0)
        self._is_usable = magic == _MAGIC and self._chunk > 0 and len(content) % 4 == 0
        self._sums = [sums[0] for sums in struct.iter_unpack(">I", content[_HEADER.size :])] if self._is_usable else []
        self._rest = b""
        self._done = 0
        self._is_equal = True

    def update(self, content: bytes) -> None:
        """Compares the next bytes of the file."""
        if not self._is_usable:
            return
        data = self._rest + content
        whole = len(data) - len(data) % self._chunk
        for start in range(0, whole, self._chunk):
            self._compare(data[start : start + self._chunk])
        self._rest = data[whole:]

    def matches(self) -> bool:
        """True unless the content, which is complete, differs from the checksums."""
        if self._rest:
            self._compare(self._rest)
            self._rest = b""
        return not self._is_usable or (self._is_equal and self._done == len(self._sums))

    def _compare(self, chunk: bytes) -> None:
        self._is_equal &= self._done < len(self._sums) and zlib.crc32(chunk) == self._sums[self._done]
        self._done += 1
