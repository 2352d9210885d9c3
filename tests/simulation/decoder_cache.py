"""Decoding of what was decoded before: many read the same bytes, and what they get cannot be changed."""

from __future__ import annotations

from functools import lru_cache

from spark_ckpt.format.segments import decode_block
from spark_ckpt.metadata import loads

_MOST = 512
"""What one schedule reads again and again is less."""

read_metadata = lru_cache(_MOST)(loads)
"""As `loads`."""

read_block = lru_cache(_MOST)(decode_block)
"""As `decode_block`."""
