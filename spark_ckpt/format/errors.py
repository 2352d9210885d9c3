"""Errors of state files."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class SegmentError(SparkCkptError, ValueError):
    """A state file is not a valid sequence of blocks (docs/protocol.md, section 2).

    Attributes:
        path: the file.
        offset: byte offset of the problem from the start of the file.
    """

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path}: {reason} (byte {offset})")
        self.path = path
        self.offset = offset
        self.reason = reason
