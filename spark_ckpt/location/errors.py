"""Errors of places that a user names."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from spark_ckpt.errors import CheckpointError, SparkCkptError


class LocationNotFoundError(SparkCkptError, FileNotFoundError):
    """There is nothing at the place named.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: there is no such file or directory")
        self.location = location


class HadoopNotFoundError(SparkCkptError):
    """The place is on HDFS, which a command reaches through a Hadoop client, and none works here.

    Attributes:
        location: the place.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(
            f"{location} is on HDFS, and there is no Hadoop client here that works ({reason}). A command has no Spark "
            "driver to ask. Name the location by the NameNode's web address, webhdfs://<host>:9870/<path>; or set "
            "JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), with libhdfs.so in "
            "$HADOOP_HOME/lib/native, and write hdfs://; or copy it with 'hdfs dfs -get' and name the copy"
        )
        self.location = location


class FileSystemPackageError(SparkCkptError, ImportError):
    """The place has a scheme that needs a package of its own, and this Python does not have it.

    Attributes:
        location: the place.
        package: what to install.
    """

    def __init__(self, location: str, scheme: str, package: str) -> None:
        super().__init__(
            f"{location}: the scheme '{scheme}' needs the package {package}, which the Python {sys.executable} does "
            f"not have: {sys.executable} -m pip install {package}"
        )
        self.location = location
        self.package = package


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


class NoCheckpointError(SparkCkptError):
    """No checkpoint of a location is complete.

    Attributes:
        location: the checkpoint location.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: no checkpoint has completed here yet")
        self.location = location


class CheckpointsMissingError(SparkCkptError):
    """No checkpoint is there, though Spark's logs have batches of a query with our state store.

    Attributes:
        path: the directory with the checkpoints.
        batch_id: the batch whose checkpoint a start begins from.
    """

    def __init__(self, path: str, batch_id: int) -> None:
        self.path = path
        self.batch_id = batch_id
        self.reason = (
            f"there is no completed checkpoint, though Spark's logs have batches of this query: a start begins from "
            f"the checkpoint of batch {batch_id}"
        )
        super().__init__(
            f"{path}: {self.reason}. Bring the directory back from a copy, or restore a savepoint; without either, "
            "start the query with a new checkpoint location"
        )


class CheckpointNotFoundError(SparkCkptError):
    """The place has checkpoints, but not the one that was asked for.

    Attributes:
        location: the place.
        checkpoint_id: the checkpoint asked for.
        available: ids of those there are, ascending.
    """

    def __init__(self, location: str, checkpoint_id: int, available: Sequence[int]) -> None:
        there = ", ".join(map(str, available)) or "none"
        super().__init__(f"{location}: there is no checkpoint {checkpoint_id}; there are {there}")
        self.location = location
        self.checkpoint_id = checkpoint_id
        self.available = tuple(available)


class LinkedStateError(CheckpointError):
    """A symbolic link below `ckpt`, through which files of others could be overwritten or deleted.

    Attributes:
        path: the link.
    """

    fatal = True

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is a symbolic link. spark-ckpt writes and deletes files below ckpt/, and a link could lead it to "
            "other files. Put the files themselves there. To keep them on another disk, link the whole location"
        )


class ModificationTimeUnknownError(CheckpointError):
    """A storage that does not say how old a file is, so that a file in use cannot be told from an orphan.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: nothing refers to this file, and this storage does not say how old it is. Stop the query and "
            "collect with a grace time of 0"
        )


class ForeignStateError(CheckpointError):
    """State of another state-store provider in the location.

    Attributes:
        path: one of its files.
    """

    fatal = True

    def __init__(self, location: str, path: str, version: int) -> None:
        self.location = location
        self.path = path
        super().__init__(
            f"{location} has state of another state-store provider ({path}) and no checkpoint of spark-ckpt, so "
            f"version {version} cannot be restored. Start the query with its original provider, or with a new "
            "checkpoint location"
        )
