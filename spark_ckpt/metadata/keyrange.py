"""Key-group ranges, and the position of each key group's data in a stream."""

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
    """The key groups from `start` to `end`, both included; empty if `end` is `start - 1`.

    Flink: `org.apache.flink.runtime.state.KeyGroupRange`. A range says nothing of the max parallelism it belongs to.

    Raises:
        MetadataValueError: `start` is negative, `end` lies before `start - 1` or beyond 2^31 - 1, or that are more than
            2^31 - 1 key groups.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if self.start < 0:
            raise MetadataValueError("key_group_range", f"the first key group is negative: {self.start}")
        if not self.start - 1 <= self.end <= _LAST_KEY_GROUP or self.number_of_key_groups > _LAST_KEY_GROUP:
            raise MetadataValueError("key_group_range", f"key groups {self.start} to {self.end} are no range")

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
        """The key groups in both ranges; an empty range if there are none (`KeyGroupRange.getIntersection`)."""
        start = max(self.start, other.start)
        return KeyGroupRange(start, max(start - 1, min(self.end, other.end)))

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}]" if self.number_of_key_groups else "[]"


@dataclass(frozen=True, slots=True, eq=False)
class KeyGroupRangeOffsets:
    """Start offset in a stream of each key group of a range.

    Flink: `org.apache.flink.runtime.state.KeyGroupRangeOffsets`. Two are equal if their ranges and offsets are.

    Args:
        key_group_range: the key groups.
        offsets: int64, one per key group in ascending order, in bytes from the start of the stream; made read-only.
            Flink checks no value of them: a canonical savepoint has 0 and raw keyed state -1 for "no data".

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
                f"an array of shape {offsets.shape} for {self.key_group_range.number_of_key_groups} key groups",
            )
        if offsets.flags.writeable:
            # A view: the caller's own array stays writeable, and copying it would double the cost of decoding.
            offsets = offsets.view()
            offsets.flags.writeable = False
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def of(cls, start: int, offsets: ArrayLike) -> KeyGroupRangeOffsets:
        """Offsets of consecutive key groups from `start` on."""
        array = np.asarray(offsets, dtype=np.int64)
        return cls(KeyGroupRange(start, start + array.size - 1), array)

    def offset_of(self, key_group: int) -> int:
        """The offset of one key group.

        Raises:
            KeyError: the key group is not in the range.
        """
        if key_group not in self.key_group_range:
            raise KeyError(key_group)
        return int(self.offsets[key_group - self.key_group_range.start])

    def intersection(self, key_group_range: KeyGroupRange) -> KeyGroupRangeOffsets:
        """Offsets of the key groups that also lie in `key_group_range`.

        Flink: `KeyGroupRangeOffsets.getIntersection`. This is all that rescaling does to a handle: the stream
        and its bytes stay as they are.
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
