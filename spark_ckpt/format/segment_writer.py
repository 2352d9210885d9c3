"""Writing of segments outside executors (docs/protocol.md, section 2). Executors write theirs in the engine."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from spark_ckpt.errors import SparkCkptError
from spark_ckpt.format.segment_ref import Blocks, SegmentRef
from spark_ckpt.format.segments import FORMAT, MAGIC, MAX_BODY_BYTES, SegmentKind
from spark_ckpt.metadata import modified_utf8

_HEADER = struct.Struct(">iBBBBiqii")
_CRC = struct.Struct(">I")
_I32 = struct.Struct(">i")
_LISTS, _KEYS_OF_ONE_LENGTH, _VALUES_OF_ONE_LENGTH = 1, 2, 4
_REMOVED = -1


class KeyGroupTooLargeError(SparkCkptError):
    """A key group has more state than a block can hold.

    Attributes:
        key_group: the key group.
        size: its bytes.
    """

    def __init__(self, key_group: int, size: int) -> None:
        super().__init__(
            f"key group {key_group} has {size} bytes of state; a block holds at most {MAX_BODY_BYTES}. Start the query "
            "with a larger maxParallelism, so that there are more key groups"
        )
        self.key_group = key_group
        self.size = size


@dataclass(frozen=True, slots=True)
class NewSection:
    """Entries of one column family in one key group.

    Args:
        column_family: name of the column family; "" for the default one.
        keys: distinct keys.
        values: the value of each key; of a list, as `list_value` encodes it. In a delta, None for a removed key.
        lists: True if values are lists.
    """

    column_family: str
    keys: Sequence[bytes]
    values: Sequence[bytes | None]
    lists: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class NewSegment:
    """A new segment in memory.

    Args:
        data: its blocks.
        key_groups: uint32, ascending.
        offsets: int64, start of each key group's block in `data`.
        rows: number of keys, removed ones included.
    """

    data: bytes
    key_groups: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    rows: int

    def ref(self, first_version: int, version: int) -> SegmentRef:
        """Reference to it, without a file.

        Args:
            first_version: first version whose changes it has; 0 for a base.
            version: last of these versions.
        """
        return SegmentRef(first_version, version, Blocks(self.key_groups, self.offsets, self.data), len(self.data))


def list_value(rows: Sequence[bytes]) -> bytes:
    """The value of a key with a list of rows."""
    return _I32.pack(len(rows)) + b"".join(_I32.pack(len(row)) + row for row in rows)


def encode_base(version: int, groups: Iterable[tuple[int, Sequence[NewSection]]]) -> NewSegment:
    """A base segment.

    Args:
        version: version of the state.
        groups: key groups in ascending order, each with its sections, of which none is empty.

    Raises:
        KeyGroupTooLargeError: a key group has more than 1 GiB.
    """
    return _encode(SegmentKind.BASE, version, groups)


def encode_delta(version: int, groups: Iterable[tuple[int, Sequence[NewSection]]]) -> NewSegment:
    """A delta segment, in which the values of removed keys are None.

    Args:
        version: version of the state that the delta leads to.
        groups: key groups in ascending order, each with its sections, of which none is empty.

    Raises:
        KeyGroupTooLargeError: a key group has more than 1 GiB.
    """
    return _encode(SegmentKind.DELTA, version, groups)


def _encode(kind: SegmentKind, version: int, groups: Iterable[tuple[int, Sequence[NewSection]]]) -> NewSegment:
    data = bytearray()
    key_groups, offsets, rows = [], [], 0
    for key_group, sections in groups:
        body = b"".join(map(_section, sections))
        if len(body) > MAX_BODY_BYTES:
            raise KeyGroupTooLargeError(key_group, len(body))
        key_groups.append(key_group)
        offsets.append(len(data))
        start = _HEADER.pack(MAGIC, FORMAT, kind, 0, 0, key_group, version, len(sections), len(body))
        data += start + _CRC.pack(google_crc32c.extend(google_crc32c.value(start), body)) + body
        rows += sum(len(section.keys) for section in sections)
    return NewSegment(bytes(data), np.array(key_groups, np.uint32), np.array(offsets, np.int64), rows)


def _section(section: NewSection) -> bytes:
    key_lengths = [len(key) for key in section.keys]
    value_lengths = [_REMOVED if value is None else len(value) for value in section.values]
    # Keys of no bytes get a length each: a reader trusts no number of entries that takes no bytes.
    one_key = len(set(key_lengths)) == 1 and (key_lengths[0] > 0 or len(key_lengths) == 1)
    one_value = len(set(value_lengths)) == 1
    flags = section.lists * _LISTS | one_key * _KEYS_OF_ONE_LENGTH | one_value * _VALUES_OF_ONE_LENGTH
    name = modified_utf8.encode(section.column_family)
    return b"".join(
        (
            struct.pack(">H", len(name)),
            name,
            bytes((flags,)),
            _I32.pack(len(key_lengths)),
            np.array(key_lengths[:1] if one_key else key_lengths, ">i4").tobytes(),
            np.array(value_lengths[:1] if one_value else value_lengths, ">i4").tobytes(),
            *section.keys,
            *(value for value in section.values if value is not None),
        )
    )
