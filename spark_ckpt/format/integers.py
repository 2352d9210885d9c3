"""Integers with a range, which decoders of messages check."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

_MAX = (1 << 63) - 1

Int64: TypeAlias = Annotated[int, Meta(ge=-_MAX - 1, le=_MAX)]
"""Integer of 64 bits, as Java's `long`."""

Natural: TypeAlias = Annotated[int, Meta(ge=0, le=_MAX)]
"""`Int64` of at least 0."""
