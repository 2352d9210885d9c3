"""Errors about Spark's own files in a checkpoint location."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class SparkLogFormatError(SparkCkptError, ValueError):
    """One of Spark's own files in a checkpoint location does not follow Spark's format.

    Attributes:
        path: the file.
        reason: description of the problem.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}. It is damaged, or was written by a Spark version that this release does not support: "
            "restore it from a copy, or upgrade spark-ckpt"
        )
        self.path = path
        self.reason = reason


class SparkLogEntryExistsError(SparkCkptError, FileExistsError):
    """A file of Spark's log already exists with other content: another process is writing this log.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} exists and is never overwritten: stop the query, then try again")
        self.path = path


class StateSchemaError(SparkCkptError, ValueError):
    """A Spark file that describes state is missing, damaged or of an unknown version.

    Attributes:
        path: the file or its directory.
        reason: description of the problem.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}. Without this Spark file the types of the state rows are unknown: restore it from a "
            "copy of the checkpoint location"
        )
        self.path = path
        self.reason = reason


class LogFencedError(SparkCkptError):
    """The location was rolled back after this run of the query had started. The run writes no more to Spark's logs.

    Attributes:
        location: the checkpoint location.
        epoch: log epoch at the start of the run.
    """

    fatal = True

    def __init__(self, location: str, epoch: int) -> None:
        super().__init__(
            f"{location} was rolled back after this run of the query had started, so its batch continues nothing. "
            "Nothing is lost: start the query again, and run only one driver per checkpoint location"
        )
        self.location = location
        self.epoch = epoch
