"""Errors of storages."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class HadoopError(SparkCkptError, OSError):
    """What Hadoop's file system in the driver has thrown.

    Attributes:
        path: of the file.
        java_class: the exception's.
    """

    def __init__(self, path: str, java_class: str, message: str) -> None:
        reason = message.partition("\n\tat ")[0]  # a NameNode sends its stack trace along
        super().__init__(f"{java_class}: {reason}")
        self.path = path
        self.java_class = java_class


class DriverGoneError(SparkCkptError, OSError):
    """The driver has ended while a file was asked for that only it can reach: whether that was done is not known.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the Spark driver has ended, and only through it could the file be reached")
        self.path = path


class UnsupportedSchemeError(SparkCkptError, ValueError):
    """A location on a file system that the coordinator has no storage for."""

    def __init__(self, location: str, scheme: str, supported: tuple[str, ...]) -> None:
        self.location = location
        self.scheme = scheme
        self.supported = supported
        super().__init__(
            f"{location}: the coordinator has no storage for the scheme '{scheme}'; it has one for "
            f"{', '.join(supported)}. Set the query's checkpointLocation to one of them"
        )


class PathEscapeError(SparkCkptError, ValueError):
    """A path that leads out of the checkpoint it stands in."""

    def __init__(self, path: str, within: str) -> None:
        self.path = path
        self.within = within
        super().__init__(f"the path '{path}' leads out of {within}: the file that names it is not one of ours")


class ExclusiveCreateUnsupportedError(SparkCkptError):
    """A storage that cannot create a file exclusively, which is what keeps two drivers apart."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: this storage cannot create a file only where there is none ({reason}), so two drivers could both "
            "complete a checkpoint. Put the checkpoint location on a storage that can (a local disk, S3)"
        )
