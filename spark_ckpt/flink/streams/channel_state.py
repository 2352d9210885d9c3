"""In-flight data: network buffers in unaligned checkpoints.

    stream   i32 0 (version), then bytes of one buffer at each offset of a handle

Several handles share a stream. Flink: `ChannelStateSerializerImpl`.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.streams.state_files import StateStream
from spark_ckpt.metadata.model import InputChannelStateHandle, ResultSubpartitionStateHandle

_VERSION = 0
_LENGTH_BYTES = 4


def read_buffers(
    handle: InputChannelStateHandle | ResultSubpartitionStateHandle, stream: StateStream
) -> Iterator[bytes]:
    """Buffers of one channel, in the order of its offsets.

    Raises:
        StateStreamFormatError: the stream is not channel state, or the size of the buffers differs from the handle's.
        StorageError: the stream cannot be read.
    """
    data = stream.input()
    at = data.position
    if (version := data.i32("version")) != _VERSION:
        data.fail("version", f"unknown channel state version {version}; {_VERSION} is supported", at)
    size = 0
    for offset in handle.offsets:
        buffer = stream.input(offset).byte_array("buffer")
        size += _LENGTH_BYTES + len(buffer)
        yield buffer
    if size != handle.state_size:
        reason = f"buffers of {size} bytes, but the handle states {handle.state_size}"
        raise StateStreamFormatError(stream.path, 0, "state_size", reason)
