"""Reference to a segment: the one description of it, from the ack of a store to `_metadata` and back to a store.

Flink has one handle on this way, too (`KeyGroupsStateHandle`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.format.integers import Natural
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_flags import SegmentFlag


class Blocks:
    """Blocks of a segment, one per key group. Immutable by convention; a rescale shares them among segments.

    Args:
        key_groups: uint32, ascending.
        offsets: int64, start of each key group's block in the segment's file, or in `data`.
        data: bytes of a segment without a file.
    """

    __slots__ = ("data", "key_groups", "offsets")

    def __init__(
        self, key_groups: NDArray[np.uint32], offsets: NDArray[np.int64], data: bytes | memoryview = b""
    ) -> None:
        self.key_groups, self.offsets, self.data = key_groups, offsets, data

    def __len__(self) -> int:
        return self.key_groups.size


NO_BLOCKS = Blocks(np.empty(0, np.uint32), np.empty(0, np.int64))
"""Blocks of a segment without rows."""


class _Handle:
    """Bytes of a handle, in a slot that is no field: neither `replace` nor the wire copy them."""

    __slots__ = ("encoded",)

    encoded: bytes | None

    def keep(self, encoded: bytes | None) -> None:
        """Keep the bytes of the handle, or none."""
        self.encoded = encoded


# Only `place_in` changes one. It is not frozen, because making a frozen one costs several times as much.
@dataclass(slots=True, eq=False)
class SegmentRef(_Handle):
    """A segment of keyed state. On the wire, `blocks` is their number (docs/protocol.md, section 1.2).

    Args:
        first_version: first version whose changes it has: 0 for a base, which has all of the state.
        version: last of these versions, which is that of the state it leads to.
        blocks: its blocks, one per key group.
        size: bytes of the segment; after a rescale, this chain's share by key groups.
        path: file relative to the `ckpt` directory; None if `blocks` hold the bytes.
        file_size: bytes of that file, which may hold other segments too.
        filters: filters that a row must all pass.
        flags: bits of `spark_ckpt.format.segment_flags`.

    Attributes:
        encoded: bytes of the handle in `_metadata`, cached by `checkpoint.encode`.
    """

    first_version: Natural
    version: Natural
    blocks: Blocks
    size: Natural
    path: str | None = None
    file_size: Natural = 0
    filters: tuple[PartitionFilter, ...] = ()
    flags: Natural = 0

    def __post_init__(self) -> None:
        self.keep(None)

    @property
    def key_groups(self) -> NDArray[np.uint32]:
        """Key groups of its blocks, ascending."""
        return self.blocks.key_groups

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Start of each block in the file, or in `data`."""
        return self.blocks.offsets

    @property
    def data(self) -> bytes | memoryview:
        """Bytes of a segment without a file."""
        return self.blocks.data

    @property
    def is_base(self) -> bool:
        """True for a base, False for a delta."""
        return self.first_version == 0

    @property
    def is_merged(self) -> bool:
        """True for a delta with the changes of several versions."""
        return 0 < self.first_version < self.version

    def has(self, flag: SegmentFlag) -> bool:
        """True if a flag is set."""
        return bool(self.flags & flag.bit)

    def place_in(self, path: str, file_size: int, start: int) -> None:
        """Place the bytes of this new segment in a file.

        Args:
            path: file relative to the `ckpt` directory.
            file_size: bytes of the file.
            start: offset of the segment in the file.
        """
        self.path, self.file_size = path, file_size
        self.blocks = Blocks(self.blocks.key_groups, self.blocks.offsets + start)
        self.keep(None)

    def copied(self) -> SegmentRef:
        """Copy that can be placed elsewhere."""
        return self.shared_as(self.first_version, self.version, self.size, self.filters, self.flags)

    def shared_as(
        self, first_version: int, version: int, size: int, filters: tuple[PartitionFilter, ...], flags: int
    ) -> SegmentRef:
        """Segment of another chain with the same blocks, restricted to rows that pass the filters."""
        # A rescale can create hundreds of thousands of these. `replace` takes several times as long.
        return SegmentRef(first_version, version, self.blocks, size, self.path, self.file_size, filters, flags)
