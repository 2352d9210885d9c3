"""Errors of storages."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class HadoopError(SparkCkptError, OSError):
    """An exception thrown by Hadoop's file system in the driver.

    Attributes:
        path: path of the file.
        java_class: class name of the exception.
    """

    def __init__(self, path: str, java_class: str, message: str) -> None:
        reason = message.partition("\n\tat ")[0]  # a NameNode appends its stack trace
        super().__init__(f"{java_class}: {reason}")
        self.path = path
        self.java_class = java_class


class DriverGoneError(SparkCkptError, OSError):
    """The driver ended during an operation on a file that only it can reach. The outcome is unknown.

    Attributes:
        path: path of the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: the Spark driver has ended, and the file is reachable only through it")
        self.path = path


class UnsupportedSchemeError(SparkCkptError, ValueError):
    """A location on a file system that the coordinator does not support."""

    def __init__(self, location: str, scheme: str, supported: tuple[str, ...]) -> None:
        self.location = location
        self.scheme = scheme
        self.supported = supported
        super().__init__(
            f"{location}: unsupported scheme '{scheme}'; supported: "
            f"{', '.join(supported)}. Set the query's checkpointLocation to one of them"
        )


class PathEscapeError(SparkCkptError, ValueError):
    """A path that escapes the checkpoint that contains it."""

    def __init__(self, path: str, within: str) -> None:
        self.path = path
        self.within = within
        super().__init__(
            f"the path '{path}' points outside {within}: the file that names it was not written by spark-ckpt"
        )


class ExclusiveCreateUnsupportedError(SparkCkptError):
    """The storage has no exclusive create, on which the fence between two drivers relies.

    Args:
        path: location, or file that could not be created.
        reason: what the storage did.
        is_writable: True if files can be created there, only not exclusively. Then a store elsewhere can fence.
    """

    def __init__(self, path: str, reason: str, is_writable: bool = False) -> None:
        self.path = path
        other = ", or set the store to 'zookeeper', which fences two drivers itself" if is_writable else ""
        super().__init__(
            f"{path}: this storage has no exclusive create ({reason}), so two drivers could both complete the same "
            f"checkpoint. Move the checkpoint location to a storage that has (a local disk, S3, HDFS){other}"
        )
