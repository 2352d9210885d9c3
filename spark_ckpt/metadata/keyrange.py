"""Key-group ranges, and the offsets of key groups in a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spark_ckpt.metadata.errors import MetadataValueError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_LAST_KEY_GROUP = 2**31 - 1


@dataclass(frozen=True, slots=True)
class KeyGroupRange:
    """Key groups from `start` to `end`, both inclusive; empty if `end` is `start - 1`.

    Flink: `org.apache.flink.runtime.state.KeyGroupRange`. A range does not depend on the max parallelism.

    Raises:
        MetadataValueError: `start` is negative, `end` is below `start - 1` or above 2^31 - 1, or the range has more
            than 2^31 - 1 key groups.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start < 0:
            raise MetadataValueError("key_group_range", f"the first key group is negative: {self.start}")
        if not self.start - 1 <= self.end <= _LAST_KEY_GROUP or self.number_of_key_groups > _LAST_KEY_GROUP:
            raise MetadataValueError("key_group_range", f"key groups {self.start} to {self.end} are not a range")

    @property
    def number_of_key_groups(self) -> int:
        """Number of key groups in the range."""
        return self.end - self.start + 1

    def __len__(self) -> int:
        return self.number_of_key_groups

    def __contains__(self, key_group: object) -> bool:
        return isinstance(key_group, (int, np.integer)) and self.start <= int(key_group) <= self.end

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.end + 1))

    def intersection(self, other: KeyGroupRange) -> KeyGroupRange:
        """Key groups in both ranges; an empty range if they are disjoint (`KeyGroupRange.getIntersection`)."""
        start = max(self.start, other.start)
        return KeyGroupRange(start, max(start - 1, min(self.end, other.end)))

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}]" if self.number_of_key_groups else "[]"


@dataclass(frozen=True, slots=True, eq=False)
class KeyGroupRangeOffsets:
    """Start offset of each key group of a range in a stream. Equal if range and offsets are equal.

    Flink: `org.apache.flink.runtime.state.KeyGroupRangeOffsets`.

    Args:
        key_group_range: range of the key groups.
        offsets: int64, one per key group in ascending order, in bytes from the start of the stream; made read-only.
            Flink does not validate them: for "no data", a canonical savepoint has 0, and raw keyed state has -1.

    Raises:
        MetadataValueError: the number of offsets is not the number of key groups.
    """

    key_group_range: KeyGroupRange
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        offsets = np.asarray(self.offsets, dtype=np.int64)
        if offsets.shape != (self.key_group_range.number_of_key_groups,):
            raise MetadataValueError(
                "offsets",
                f"offsets of shape {offsets.shape} for {self.key_group_range.number_of_key_groups} key groups",
            )
        if offsets.flags.writeable:
            # A view leaves the caller's own array writeable. A copy would double the cost of decoding.
            offsets = offsets.view()
            offsets.flags.writeable = False
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def of(cls, start: int, offsets: ArrayLike) -> KeyGroupRangeOffsets:
        """Offsets of consecutive key groups from `start` on."""
        array = np.asarray(offsets, dtype=np.int64)
        return cls(KeyGroupRange(start, start + array.size - 1), array)

    def offset_of(self, key_group: int) -> int:
        """Offset of one key group.

        Raises:
            KeyError: the key group is not in the range.
        """
        if key_group not in self.key_group_range:
            raise KeyError(key_group)
        return int(self.offsets[key_group - self.key_group_range.start])

    def intersection(self, key_group_range: KeyGroupRange) -> KeyGroupRangeOffsets:
        """Offsets of the key groups in both ranges.

        Flink: `KeyGroupRangeOffsets.getIntersection`. A rescale changes nothing else in a handle: the stream and its
        bytes stay the same.
        """
        common = self.key_group_range.intersection(key_group_range)
        first = common.start - self.key_group_range.start
        return KeyGroupRangeOffsets(common, self.offsets[first : first + len(common)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyGroupRangeOffsets):
            return NotImplemented
        return self.key_group_range == other.key_group_range and np.array_equal(self.offsets, other.offsets)

    def __hash__(self) -> int:
        return hash((self.key_group_range, self.offsets.tobytes()))
