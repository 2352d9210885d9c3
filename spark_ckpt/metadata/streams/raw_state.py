"""Raw state: bytes of which only the operator that wrote them knows more than where its parts begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_ckpt.metadata.streams.state_files import StateStream

NOT_STARTED = -1
"""Offset of a key group for which nothing was written (`KeyedStateCheckpointOutputStream.NO_OFFSET_SET`)."""


def read_raw_parts(stream: StateStream, offsets: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """The parts of a raw stream, each up to the next one, the last one up to the end.

    Args:
        stream: the stream.
        offsets: where each part begins: of key groups one after the other, or of partitions.

    Returns:
        Pairs of a position in `offsets` and the bytes, ascending by offset; without those not started.

    Raises:
        StateStreamFormatError: an offset lies outside of the stream.
        StorageError: the stream cannot be read.
    """
    starts = sorted((offset, index) for index, offset in enumerate(offsets) if offset != NOT_STARTED)
    ends = [*(offset for offset, _ in starts[1:]), stream.size]
    for (offset, index), end in zip(starts, ends, strict=False):
        data = stream.input(offset, end)
        yield index, data.raw(data.remaining, "part")
