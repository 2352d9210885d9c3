"""Cached decoding: the same bytes are read many times, and the results are immutable."""

from __future__ import annotations

from functools import lru_cache

from spark_ckpt.format.segments import decode_block
from spark_ckpt.metadata import loads

_MAX_ENTRIES = 512
"""Cache size; more than the set that one schedule reads repeatedly."""

read_metadata = lru_cache(_MAX_ENTRIES)(loads)
"""Cached `loads`."""

read_block = lru_cache(_MAX_ENTRIES)(decode_block)
"""Cached `decode_block`."""
