"""Flags of segments: what a reader may use or has to know about the blocks of one.

Writers set flags and readers use them. All between carry them as one number: the wire, the chains and `_metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from spark_ckpt.features import Feature


class SegmentFlag(NamedTuple):
    """One flag.

    Args:
        name: name of its column in `_metadata`.
        bit: its bit in `SegmentRef.flags`.
        join: the flag of a segment that a rescale joins from parts, by whether each has it: `any` or `all`.
        feature: feature that a reader of such segments needs; None if a reader may ignore the flag.
        is_wide: True if its column has an int32 per segment, as the first release with this flag wrote it; else a bit.
    """

    name: str
    bit: int
    join: Callable[[Iterable[object]], bool]
    feature: Feature | None = None
    is_wide: bool = False


COMPRESSED = SegmentFlag("compressed", 1, any, Feature.COMPRESSED_BLOCKS, is_wide=True)
"""The segment has blocks with a compressed body."""

ORDERED = SegmentFlag("ordered", 2, all)
"""The segment has all of the state at its version, as single values in the order of their keys' hashes, and
compressed in chunks if at all (docs/protocol.md, section 2): rows can be looked up in its file."""

FLAGS = (COMPRESSED, ORDERED)
"""All flags."""


def joined_flags(parts: Iterable[int]) -> int:
    """Flags of a segment that a rescale joins from parts with these flags."""
    parts = list(parts)
    return sum(flag.bit for flag in FLAGS if flag.join(part & flag.bit for part in parts))
