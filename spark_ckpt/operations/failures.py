"""What keeps checkpoints from being verified, gone back to, saved or restored."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class NoCheckpointError(SparkCkptError):
    """No checkpoint of a location is complete.

    Attributes:
        location: the checkpoint location.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: no checkpoint has completed here yet")
        self.location = location
