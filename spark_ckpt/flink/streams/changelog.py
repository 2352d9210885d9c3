"""Changes in a changelog, in files or in `_metadata`.

    file     bool compressed, then a set of changes at 1 + offset of each handle
    set      i32 number of groups, each: i32 number of changes, i32 key group (-1: descriptions of states),
             per change bytes

Neither the offset nor the size in a handle counts the first byte. If the rest is compressed, both count decompressed
bytes. Flink: `StateChangeFormat`, `StateChangeFsUploader`, `OutputStreamWithPos`.
"""

from __future__ import annotations

from collections.abc import Iterator

from spark_ckpt.flink.streams.snappy import SnappyInput
from spark_ckpt.flink.streams.state_files import StateStream
from spark_ckpt.flink.streams.stream_input import StreamInput
from spark_ckpt.metadata.handles import StateChange

METADATA_KEY_GROUP = -1
"""Key group of changes that describe states (`StateChange.META_KEY_GROUP`)."""

_FIRST_BYTE = 1


def read_changes(stream: StateStream, offset: int) -> Iterator[StateChange]:
    """One set of changes.

    Args:
        stream: changelog file, opened with `size_is_known=False`.
        offset: offset in the handle.

    Raises:
        StateStreamFormatError: malformed changes.
        StorageError: the stream cannot be read.
    """
    first = stream.input()
    at = first.position
    compressed = first.u8("compressed")
    if compressed > 1:
        first.fail("compressed", f"{compressed} is neither 0 nor 1", at)
    if offset < 0:
        first.fail("offset", f"the changes begin at {offset}", at)
    if compressed:
        data: StreamInput = SnappyInput(first)
        data.skip(offset, "offset")
    else:
        data = stream.input(_FIRST_BYTE + offset)
    for index in range(data.count("groups", 8)):
        data.enter("groups", index)
        number = data.count("changes", 4)
        at = data.position
        if (key_group := data.i32("key_group")) < METADATA_KEY_GROUP:
            data.fail("key_group", f"key group {key_group}", at)
        for _ in range(number):
            data.mark()
            yield StateChange(key_group, data.byte_array("change"))
        data.leave()
