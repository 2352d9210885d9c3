"""What a place that a command was given can be, other than what the command needs."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class LocationNotFoundError(SparkCkptError, FileNotFoundError):
    """There is nothing at the place named.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: there is no such file or directory")
        self.location = location


class ForeignLocationError(SparkCkptError):
    """Something is at the place named, but not what the command works on.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location


class TargetExistsError(SparkCkptError, FileExistsError):
    """There is a file where a command was to write a new one.

    Attributes:
        target: the file.
    """

    def __init__(self, target: str) -> None:
        super().__init__(f"{target} is there already, and nothing is overwritten: name a new file or directory")
        self.target = target
