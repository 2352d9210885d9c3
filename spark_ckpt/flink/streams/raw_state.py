"""Raw state: parts at known offsets, with bytes that only the operator understands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_ckpt.flink.streams.state_files import StateStream

NOT_STARTED = -1
"""Offset of a key group without data (`KeyedStateCheckpointOutputStream.NO_OFFSET_SET`)."""


def read_raw_parts(stream: StateStream, offsets: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Parts of a raw stream. Each ends at the next part, the last one at the end of the stream.

    Args:
        stream: open stream.
        offsets: start of each part: of consecutive key groups, or of partitions.

    Returns:
        Pairs of position in `offsets` and bytes, ascending by offset, without key groups that have no data.

    Raises:
        StateStreamFormatError: an offset is outside the stream.
        StorageError: the stream cannot be read.
    """
    starts = sorted((offset, index) for index, offset in enumerate(offsets) if offset != NOT_STARTED)
    ends = [*(offset for offset, _ in starts[1:]), stream.size]
    for (offset, index), end in zip(starts, ends, strict=False):
        data = stream.input(offset, end)
        yield index, data.raw(data.remaining, "part")
