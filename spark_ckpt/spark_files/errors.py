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
