"""Errors of spark-ckpt: one base class, and one class per kind of failure.

Every message names the offending object (a file, an offset, a setting) and says how to fix the problem. Everything a
caller needs to handle an error is available as attributes, not only in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.redaction import redacted


class SparkCkptError(Exception):
    """Base class of all errors that spark-ckpt raises on purpose. Credentials in URLs are redacted from its text."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(arg) if isinstance(arg, str) else arg for arg in args))

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, redacted(value) if isinstance(value, str) else value)


class RefusedError(SparkCkptError):
    """A request that is refused, with all reasons at once. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        problems: every reason, each with a way out.
    """

    refusal = "the request is refused"
    """What cannot be done."""

    def __init__(self, location: str, problems: Sequence[str]) -> None:
        self.location = location
        self.problems = tuple(dict.fromkeys(problems))
        reasons = "".join(f"\n- {problem}" for problem in self.problems)
        super().__init__(f"{location}: {self.refusal}:{reasons}")


class FormatError(SparkCkptError, ValueError):
    """Bytes that do not follow Flink's format.

    Attributes:
        path: name of the file, or a label for bytes that are not in a file.
        offset: byte offset of the offending value from the start.
        field: dotted path of the offending value.
        reason: description of the problem.
    """

    def __init__(self, path: str, offset: int, field: str, reason: str) -> None:
        super().__init__(f"{path}: {reason} (byte {offset}, {field})")
        self.path = path
        self.offset = offset
        self.field = field
        self.reason = reason


class PySparkNotFoundError(SparkCkptError, ImportError):
    """An operation needs PySpark, which is not installed in this Python environment."""

    def __init__(self) -> None:
        super().__init__("PySpark is not installed in this Python environment: pip install 'spark-ckpt[spark]'")


class UnsupportedSparkError(SparkCkptError):
    """This release has no jar for the given version of Spark.

    `supported` has the first supported release of each supported minor version.
    """

    def __init__(self, spark_version: str, supported: tuple[str, ...]) -> None:
        self.spark_version = spark_version
        self.supported = supported
        ranges = [f"{first.rpartition('.')[0]}.x from {first}" for first in supported]
        super().__init__(
            f"Spark {spark_version} is not supported by this release of spark-ckpt; supported are "
            f"{', '.join(ranges)}. Install one of them, for example pip install 'pyspark~={supported[-1]}'"
        )


class JarNotFoundError(SparkCkptError, FileNotFoundError):
    """The installed package lacks the shim's jar."""

    def __init__(self, path: object) -> None:
        self.path = str(path)
        super().__init__(
            f"the jar {path} is missing. A wheel of spark-ckpt has it inside; in a source tree, "
            "'make jar' (or 'pip install -e .') builds it with Maven"
        )


class SessionConfigError(SparkCkptError, ValueError):
    """`configure` cannot set up this Spark session. The message names the conflicting setting."""


class SettingError(SparkCkptError, ValueError):
    """A setting is unknown or has an invalid value.

    Attributes:
        key: full key of the setting.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key


class ProtocolError(SparkCkptError, ValueError):
    """A message violates docs/protocol.md: the jar and the Python package are from different releases."""


class StorageError(SparkCkptError, OSError):
    """A storage operation failed.

    Attributes:
        path: full URL or path of the file or directory.
        operation: the failed operation: read, write, create, list, delete.
    """

    def __init__(self, path: str, operation: str, reason: object) -> None:
        super().__init__(f"cannot {operation} {path}: {reason}")
        self.path = path
        self.operation = operation

    def __str__(self) -> str:
        return str(self.args[0])


class StateFileNotFoundError(StorageError, FileNotFoundError):
    """An expected file does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "read", "no such file")


class UnsupportedFormatError(SparkCkptError):
    """A file from a later release, which this release would misread.

    Attributes:
        path: the file.
        features: names of the features unknown to this release; empty if the format itself is newer.
    """

    def __init__(self, path: str, needs: str, features: tuple[str, ...] = ()) -> None:
        self.path = path
        self.needs = needs
        self.features = features
        super().__init__(
            f"{path} requires {needs}, which this release of spark-ckpt does not support: a later release wrote it. "
            "Upgrade spark-ckpt to that release or a newer one, wheel and jar together. Nothing was changed"
        )


class LogMissingError(SparkCkptError):
    """The log of completed checkpoints of a location is gone.

    Attributes:
        path: directory of the log.
        store: the store that kept the log.
    """

    fatal = True

    def __init__(self, path: str, store: str) -> None:
        self.path = path
        self.store = store
        if store == "zookeeper":
            way_out = "The query's node in ZooKeeper has its records as well: its next start writes them here again"
        else:
            way_out = (
                "Restore the directory from a copy. Without one, spark.sql.streaming.stateStore.ckpt.store="
                "standalone continues from the newest checkpoint with an intact _metadata; it keeps no log and has no "
                "fence"
            )
        super().__init__(
            f"{path} has no records, and the checkpoints of this location were completed with the store '{store}', "
            f"which keeps them there: they were deleted. {way_out}"
        )


class CheckpointError(SparkCkptError):
    """A checkpoint cannot be taken or restored."""


class SavepointLocationError(CheckpointError):
    """A savepoint is used as a checkpoint location.

    Attributes:
        location: the savepoint.
    """

    fatal = True

    def __init__(self, location: str) -> None:
        self.location = location
        super().__init__(
            f"{location} is a savepoint, and no query runs on one: 'spark-ckpt restore {location} NEW_LOCATION' makes "
            "a checkpoint location of it"
        )


class DamagedCheckpointError(CheckpointError):
    """A file of a completed checkpoint is missing or differs from what was written.

    Attributes:
        path: the file.
        checkpoint_id: id of the damaged checkpoint.
        newest_good: id of the newest retained checkpoint that is intact, or None.
    """

    fatal = True

    def __init__(self, path: str, checkpoint_id: int, reason: str, newest_good: int | None, way_out: str) -> None:
        self.path = path
        self.checkpoint_id = checkpoint_id
        self.reason = reason
        self.newest_good = newest_good
        super().__init__(f"{self.what}. {way_out}")

    @property
    def what(self) -> str:
        """Description of the damage, without the remedy."""
        return f"checkpoint {self.checkpoint_id} is damaged: {self.path}: {self.reason}"
