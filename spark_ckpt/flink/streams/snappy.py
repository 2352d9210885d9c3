"""Snappy's framing format, which Flink uses to compress state (`SnappyStreamCompressionDecorator`).

    chunk   u8 type, u24 length (little-endian), bytes of this length
            0x00: u32 masked CRC32C (little-endian) and a compressed block; 0x01: the same with uncompressed bytes;
            0xFF: "sNaPpY", at the start of a stream

See https://github.com/google/snappy/blob/main/framing_format.txt. Unlike Flink, this reader verifies the checksums.
Flink writes no other types of chunks. The format allows readers to skip types from 0x80 on, but this reader rejects
them: one flipped bit turns a data chunk into such a chunk, and a reader that skips it would lose state.
"""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.streams.stream_input import StreamInput

_COMPRESSED, _UNCOMPRESSED, _IDENTIFIER = 0x00, 0x01, 0xFF
_STREAM_NAME = b"sNaPpY"
_MAX_BYTES = 1 << 16


class SnappyInput(StreamInput):
    """Reader of the decompressed bytes of a compressed stream.

    Args:
        compressed: compressed stream, at the start of a chunk.
    """

    __slots__ = ("_compressed",)

    def __init__(self, compressed: StreamInput) -> None:
        super().__init__(_chunks(compressed), compressed.path)
        self._compressed = compressed

    def _failure(self, offset: int, field: str, reason: str) -> SparkCkptError:
        # The closest position in the file is that of the last chunk read.
        return StateStreamFormatError(
            self._path, self._compressed.position, field, f"{reason}, at byte {offset} of the compressed data"
        )


def _chunks(data: StreamInput) -> Iterator[bytes]:
    """Decompressed bytes of each chunk of a compressed stream, or of several concatenated ones."""
    while not data.at_end():
        at = data.mark()
        kind = data.u8("chunk")
        length = int.from_bytes(data.raw(3, "chunk"), "little")
        content = data.raw(length, "chunk")
        if kind == _IDENTIFIER:
            if content != _STREAM_NAME:
                data.fail("chunk", f"a stream identifier {content[:8].hex()}", at)
        elif kind in (_COMPRESSED, _UNCOMPRESSED):
            yield _block(data, kind, content, at)
        else:
            data.fail("chunk", f"a chunk of type {kind:#04x}, which Flink does not write", at)


def _block(data: StreamInput, kind: int, content: bytes, at: int) -> bytes:
    checksum, block = int.from_bytes(content[:4], "little"), content[4:]
    if kind == _COMPRESSED:
        block = _decompressed(data, block, at)
    found = google_crc32c.value(block)
    if len(content) < 4 or checksum != ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF:
        data.fail("chunk", "the chunk is damaged: its checksum does not match", at)
    return block


def _decompressed(data: StreamInput, block: bytes, at: int) -> bytes:
    import pyarrow as pa

    size = shift = 0
    for byte in block[:3]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if not 0 < size <= _MAX_BYTES:
        data.fail("chunk", f"a chunk of {size} bytes; the maximum is {_MAX_BYTES}", at)
    try:
        return bytes(pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))
    except (OSError, ValueError) as e:
        data.fail("chunk", f"the chunk cannot be decompressed: {e}", at)
