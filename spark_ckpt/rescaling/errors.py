"""Errors of rescales."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class RescaleRefusedError(SparkCkptError):
    """A location cannot be rescaled as requested. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        partitions: requested number of partitions.
        reason: cause and remedy.
    """

    def __init__(self, location: str, partitions: int, reason: str) -> None:
        super().__init__(f"{location} cannot be rescaled to {partitions} partitions: {reason}")
        self.location = location
        self.partitions = partitions
        self.reason = reason
