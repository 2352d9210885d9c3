"""Reference to a segment: the one description of it, from the ack of a store to `_metadata` and back to a store.

Flink has one handle on this way, too (`KeyGroupsStateHandle`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_flags import SegmentFlag

NO_KEY_GROUPS: NDArray[np.uint32] = np.empty(0, np.uint32)
"""Key groups of a segment without blocks."""

NO_OFFSETS: NDArray[np.int64] = np.empty(0, np.int64)
"""Offsets of a segment without blocks."""


@dataclass(slots=True, eq=False)  # not frozen: making a frozen one costs several times as much
class SegmentRef:
    """A segment of keyed state. Only `place_in` changes it: it places the bytes of a new segment in a file.

    Args:
        first_version: first version whose changes it has: 0 for a base, which has all of the state.
        version: last of these versions, which is that of the state it leads to.
        key_groups: uint32, ascending.
        offsets: int64, start of each key group's block in the file or in `data`.
        size: bytes of the segment; after a rescale, this chain's share by key groups.
        path: file relative to the `ckpt` directory; None if `data` holds the bytes.
        file_size: bytes of that file, which may hold other segments too.
        data: bytes of a segment without a file.
        filters: filters that a row must all pass.
        flags: bits of `spark_ckpt.format.segment_flags`.

    Attributes:
        encoded: bytes of the handle in `_metadata`, cached by `checkpoint.encode`. Not an argument, so that `replace`
            does not copy them to a segment with another handle.
    """

    first_version: int
    version: int
    key_groups: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    size: int
    path: str | None = None
    file_size: int = 0
    data: bytes | memoryview = b""
    filters: tuple[PartitionFilter, ...] = ()
    flags: int = 0
    encoded: bytes | None = field(default=None, init=False, repr=False)

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
        self.path, self.file_size, self.offsets = path, file_size, self.offsets + start
        self.data = b""
        self.encoded = None

    def copied(self) -> SegmentRef:
        """Copy that can be placed elsewhere."""
        return self.shared_as(self.first_version, self.version, self.size, self.filters, self.flags)

    def shared_as(
        self, first_version: int, version: int, size: int, filters: tuple[PartitionFilter, ...], flags: int
    ) -> SegmentRef:
        """Segment of another chain with the same blocks, restricted to rows that pass the filters."""
        # A rescale can create hundreds of thousands of these. `replace` takes several times as long.
        return SegmentRef(
            first_version,
            version,
            self.key_groups,
            self.offsets,
            size,
            self.path,
            self.file_size,
            self.data,
            filters,
            flags,
        )
