"""Errors of mirrors."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class NotAMirrorError(SparkCkptError):
    """A location is not the mirror that a command expects.

    Attributes:
        location: the location.
        reason: what it is instead, and the remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location} is no such mirror: {reason}")
        self.location = location
        self.reason = reason


class MirrorDivergedError(SparkCkptError):
    """The query went back or was changed, so its mirror cannot follow it any more. The mirror stays whole.

    Attributes:
        location: the mirror.
        source: location of the query.
        reason: what happened there.
    """

    fatal = True

    def __init__(self, location: str, source: str, reason: str) -> None:
        super().__init__(
            f"{location} cannot follow {source} any more: {reason}. The mirror is still whole, as of before. Begin a "
            "new one in another directory, then delete this one"
        )
        self.location = location
        self.source = source
        self.reason = reason


class SourceUnreachableError(SparkCkptError):
    """A failover cannot fence the query at the source of a mirror. Nothing was changed.

    Attributes:
        location: the mirror.
        source: location of the query.
        reason: why it cannot be claimed.
    """

    def __init__(self, location: str, source: str, reason: str) -> None:
        super().__init__(
            f"{source}, the source of the mirror {location}, cannot be claimed, so a driver that still runs there is "
            f"not fenced: its sink may get batches that the query repeats here. Make sure that it is gone, then use "
            f"--force: {reason}"
        )
        self.location = location
        self.source = source
        self.reason = reason
