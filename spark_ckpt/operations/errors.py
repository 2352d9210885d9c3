"""What keeps an operation from being done."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class RescaleRefusedError(SparkCkptError):
    """The number of partitions of a location cannot be changed as asked. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        partitions: the number asked for.
        reason: why not, and what to do.
    """

    def __init__(self, location: str, partitions: int, reason: str) -> None:
        super().__init__(f"{location} cannot be rescaled to {partitions} partitions: {reason}")
        self.location = location
        self.partitions = partitions
        self.reason = reason


class SparkLogFormatError(SparkCkptError, ValueError):
    """A file of Spark's own in a checkpoint location that is not what Spark writes.

    Attributes:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}. It was damaged, or written by a version of Spark that this release does not know: "
            "bring it back from a copy, or upgrade spark-ckpt"
        )
        self.path = path
        self.reason = reason


class SparkLogEntryExistsError(SparkCkptError, FileExistsError):
    """A file of Spark's log is there already, with other content: somebody else is writing this log.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there already, and is never overwritten: stop the query, then try again")
        self.path = path
