"""Errors of checkpoint locations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timezone

from spark_ckpt.errors import CheckpointError, SparkCkptError
from spark_ckpt.figures import iso_time


class LocationNotFoundError(SparkCkptError, FileNotFoundError):
    """The location does not exist.

    Attributes:
        location: the location.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: no such file or directory")
        self.location = location


class HadoopNotFoundError(SparkCkptError):
    """The location is on HDFS, and this host has no working Hadoop client.

    Attributes:
        location: the location.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(
            f"{location} is on HDFS, and no working Hadoop client was found here ({reason}). The command line does not "
            "use Spark's client. Either use the NameNode's WebHDFS address, webhdfs://<host>:9870/<path>; or keep "
            "hdfs:// and set JAVA_HOME, HADOOP_HOME and CLASSPATH=$(hadoop classpath --glob), with libhdfs.so in "
            "$HADOOP_HOME/lib/native; or copy the location with 'hdfs dfs -get' and use the copy"
        )
        self.location = location


class FileSystemPackageError(SparkCkptError, ImportError):
    """The scheme of the location needs a package that is not installed.

    Attributes:
        location: the location.
        package: package to install.
    """

    def __init__(self, location: str, scheme: str, package: str) -> None:
        super().__init__(
            f"{location}: the scheme '{scheme}' needs the package {package}, which is not installed. Run: "
            f"{sys.executable} -m pip install {package}"
        )
        self.location = location
        self.package = package


class ForeignLocationError(SparkCkptError):
    """The location exists, but its content is not what the command works on.

    Attributes:
        location: the location.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location


class TargetExistsError(SparkCkptError, FileExistsError):
    """The target file exists already.

    Attributes:
        target: the file.
    """

    def __init__(self, target: str) -> None:
        super().__init__(f"{target} exists already and is not overwritten: choose a new file or directory")
        self.target = target


class NoCheckpointError(SparkCkptError):
    """The location has no completed checkpoint yet.

    Attributes:
        location: the checkpoint location.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: no checkpoint has completed yet")
        self.location = location


class CheckpointsMissingError(SparkCkptError):
    """The location has no checkpoint, but Spark's logs have batches of a query with our state store.

    Attributes:
        path: the directory of the checkpoints.
        batch_id: the batch whose checkpoint the next start needs.
    """

    def __init__(self, path: str, batch_id: int) -> None:
        self.path = path
        self.batch_id = batch_id
        self.reason = (
            f"no completed checkpoint found, but Spark's logs have batches of this query: the next start needs the "
            f"checkpoint of batch {batch_id}"
        )
        super().__init__(
            f"{path}: {self.reason}. Recover the directory from a backup or restore a savepoint; without either, "
            "start the query with a new checkpoint location"
        )


class CheckpointNotFoundError(SparkCkptError):
    """The location has no checkpoint of the requested id.

    Attributes:
        location: the location.
        checkpoint_id: the requested checkpoint.
        available: ids of the available checkpoints, ascending.
    """

    def __init__(self, location: str, checkpoint_id: int, available: Sequence[int]) -> None:
        there = ", ".join(map(str, available)) or "none"
        super().__init__(f"{location}: no checkpoint {checkpoint_id}; available: {there}")
        self.location = location
        self.checkpoint_id = checkpoint_id
        self.available = tuple(available)


class TagNameError(SparkCkptError, ValueError):
    """No tag can have this name.

    Attributes:
        name: the name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"'{name}' cannot be the name of a tag: use a letter, then up to 99 letters, digits, dots, hyphens and "
            "underscores"
        )
        self.name = name


class TagExistsError(SparkCkptError):
    """A checkpoint has this tag already. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        name: name of the tag.
        checkpoint_id: the checkpoint with the tag.
    """

    def __init__(self, location: str, name: str, checkpoint_id: int) -> None:
        super().__init__(
            f"{location}: checkpoint {checkpoint_id} has the tag '{name}' already. Choose another name, or remove the "
            f"tag first: spark-ckpt untag {location} {name}"
        )
        self.location = location
        self.name = name
        self.checkpoint_id = checkpoint_id


class TagNotFoundError(SparkCkptError):
    """No checkpoint has this tag.

    Attributes:
        location: the checkpoint location.
        name: name of the tag.
        available: names of the tags there.
    """

    def __init__(self, location: str, name: str, available: Sequence[str]) -> None:
        super().__init__(f"{location}: no tag '{name}'; available: {', '.join(available) or 'none'}")
        self.location = location
        self.name = name
        self.available = tuple(available)


class NoCheckpointAtTimeError(SparkCkptError):
    """No checkpoint had completed by a time.

    Attributes:
        location: the checkpoint location.
        time_ms: the time, in milliseconds since 1970 UTC.
        first_ms: completion time of the oldest checkpoint there, in milliseconds since 1970 UTC; None without any.
    """

    def __init__(self, location: str, time_ms: int, first_ms: int | None) -> None:
        oldest = "there is none" if first_ms is None else f"the oldest was completed at {iso_time(first_ms)}"
        super().__init__(f"{location}: no checkpoint there was complete at {iso_time(time_ms)}: {oldest}")
        self.location = location
        self.time_ms = time_ms
        self.first_ms = first_ms


class LinkedStateError(CheckpointError):
    """A symbolic link below `ckpt`. Through it, files outside the location could be overwritten or deleted.

    Attributes:
        path: the link.
    """

    fatal = True

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is a symbolic link. spark-ckpt writes and deletes files below ckpt/, and a link could lead it to "
            "files elsewhere. Replace the link by the files. To keep them on another disk, link the whole location"
        )


class ModificationTimeUnknownError(CheckpointError):
    """The storage reports no modification time, so a file in use cannot be told from an orphan.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: no checkpoint refers to this file, and the storage reports no modification time. Stop the query, "
            "then run spark-ckpt gc with --grace 0"
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
            f"version {version} cannot be restored. Import that state (spark-ckpt import {location}), start the query "
            "with its original provider, or with a new checkpoint location"
        )


class LocationInUseError(SparkCkptError):
    """A driver may be running the query of a location. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        owner: the driver with the last claim, as text.
        is_known: True if the driver is known to be running; False if this host cannot tell.
        last_ms: time of its newest record, in milliseconds since 1970 UTC.
    """

    def __init__(self, location: str, owner: str, is_known: bool, last_ms: int) -> None:
        known = (
            "is running"
            if is_known
            else "may be running: it started on another host, in another container, before the last boot or with an "
            "earlier release, so its process cannot be checked from here, and its claim does not say that it writes "
            "Spark's logs with the file manager of this release, which a rollback fences off"
        )
        last = datetime.fromtimestamp(last_ms / 1000, timezone.utc).isoformat(timespec="seconds")
        super().__init__(
            f"{location} is claimed by {owner}, which {known}. Its last record was written at {last}. Stop the query "
            "first. If you are sure that it is not running, pass --force: a driver that is still running is fenced off "
            "and completes no further checkpoint"
        )
        self.location = location
        self.owner = owner
        self.is_known = is_known
        self.last_ms = last_ms


class ImportUnfinishedError(CheckpointError):
    """An import into a new location was interrupted.

    Attributes:
        location: the new location.
    """

    fatal = True

    def __init__(self, location: str) -> None:
        super().__init__(
            f"{location}: an import into this location was interrupted, so it has no complete state. Delete it and "
            "import again; the location that the state comes from is unchanged"
        )
        self.location = location


class NotCommittedError(SparkCkptError):
    """Spark cannot resume after the batch of a checkpoint: the batch is uncommitted, or Spark purged its log entries.

    Attributes:
        location: the checkpoint location.
        checkpoint_id: the checkpoint.
        batch_id: its batch.
    """

    def __init__(self, location: str, checkpoint_id: int, batch_id: int) -> None:
        super().__init__(
            f"{location}: Spark's logs lack the commit of batch {batch_id} or the offsets before it, so no query can "
            f"resume from checkpoint {checkpoint_id}. If the batch is running, retry when it has finished. If Spark "
            "has purged the entries, choose a later checkpoint; spark.sql.streaming.minBatchesToRetain keeps more"
        )
        self.location = location
        self.checkpoint_id = checkpoint_id
        self.batch_id = batch_id
