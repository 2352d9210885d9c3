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


class RescaleNotAnsweredError(SparkCkptError):
    """No driver has answered the request for a rescale of a running query. The request was withdrawn.

    Attributes:
        location: the checkpoint location.
        partitions: requested number of partitions.
        seconds: how long the command has waited.
        reason: possible causes and remedies.
    """

    def __init__(self, location: str, partitions: int, seconds: float, reason: str | None = None) -> None:
        self.location = location
        self.partitions = partitions
        self.seconds = seconds
        self.reason = reason or (
            "it is stopped (leave out --running), or idle (a request takes effect with the second batch after it), or "
            "runs a release without this rescale. The request was withdrawn; a query that has read it already still "
            "changes with its next batch"
        )
        super().__init__(
            f"{location}: the query has not answered the request for {partitions} partitions within {seconds:.0f} s: "
            f"{self.reason}"
        )
