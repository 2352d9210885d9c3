"""The errors of spark-ckpt: one base class, and a specific class for each thing that can be wrong.

Every error names the thing that is wrong (a file, an offset, a setting) and says what to do about it. What a caller
needs in order to act stands in attributes, not only in the text.
"""

from __future__ import annotations

from spark_ckpt.redaction import redacted


class SparkCkptError(Exception):
    """Base class of every error that spark-ckpt raises on purpose. Its text has no credentials of a URL."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(redacted(arg) if isinstance(arg, str) else arg for arg in args))

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, redacted(value) if isinstance(value, str) else value)


class FormatError(SparkCkptError, ValueError):
    """Bytes that are not what Flink writes.

    Attributes:
        path: name of the file, or of what stands for one.
        offset: byte position of the offending value, counted from the start.
        field: dotted path of the offending value.
        reason: what is wrong at that place.
    """

    def __init__(self, path: str, offset: int, field: str, reason: str) -> None:
        super().__init__(f"{path}: {reason} (byte {offset}, {field})")
        self.path = path
        self.offset = offset
        self.field = field
        self.reason = reason


class PySparkNotFoundError(SparkCkptError, ImportError):
    """PySpark is not installed in this Python environment, and something was asked that needs it."""

    def __init__(self) -> None:
        super().__init__("PySpark is not installed in this Python environment: pip install 'spark-ckpt[spark]'")


class UnsupportedSparkError(SparkCkptError):
    """This release has no jar for the given version of Spark."""

    def __init__(self, spark_version: str, supported: tuple[str, ...]) -> None:
        self.spark_version = spark_version
        self.supported = supported
        super().__init__(
            f"Spark {spark_version} is not supported by this release of spark-ckpt; supported are "
            f"{', '.join(f'{minor}.x' for minor in supported)}. Install one of them, for example "
            f"pip install 'pyspark~={supported[-1]}.0'"
        )


class JarNotFoundError(SparkCkptError, FileNotFoundError):
    """The package is installed without the shim's jar."""

    def __init__(self, path: object) -> None:
        self.path = str(path)
        super().__init__(
            f"the jar {path} is missing. A wheel of spark-ckpt has it inside; in a source tree, "
            "'make jar' (or 'pip install -e .') builds it with Maven"
        )


class SessionConfigError(SparkCkptError, ValueError):
    """`configure` cannot set up this Spark session. The message says which setting is in the way."""


class SettingError(SparkCkptError, ValueError):
    """A setting has a value it cannot have, or there is no such setting.

    Attributes:
        key: the whole key of the setting.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key


class ProtocolError(SparkCkptError, ValueError):
    """A message that docs/protocol.md does not allow: the jar and the Python package are of different releases."""


class StorageError(SparkCkptError, OSError):
    """A storage did not do what it was asked.

    Attributes:
        path: the file or directory, as a whole URL or path.
        operation: what was asked: read, write, create, list, delete.
    """

    def __init__(self, path: str, operation: str, reason: object) -> None:
        super().__init__(f"cannot {operation} {path}: {reason}")
        self.path = path
        self.operation = operation

    def __str__(self) -> str:
        return str(self.args[0])


class StateFileNotFoundError(StorageError, FileNotFoundError):
    """A file that should be there is not."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "read", "there is no such file")


class UnsupportedFormatError(SparkCkptError):
    """A later release wrote this, in a way that this release would misread.

    Attributes:
        path: the file.
        features: names of the features that this release does not know; empty if the format itself is newer.
    """

    def __init__(self, path: str, needs: str, features: tuple[str, ...] = ()) -> None:
        self.path = path
        self.needs = needs
        self.features = features
        super().__init__(
            f"{path} needs {needs}, which this release of spark-ckpt does not know: a later release wrote it. Upgrade "
            "spark-ckpt to that release or a newer one, wheel and jar together. Nothing was changed"
        )


class LogMissingError(SparkCkptError):
    """A location whose checkpoints were in a log of completed checkpoints, which is not there any more.

    Attributes:
        path: the directory of the log.
        store: the store that kept it.
    """

    fatal = True

    def __init__(self, path: str, store: str) -> None:
        self.path = path
        self.store = store
        if store == "zookeeper":
            way_out = "The query's node in ZooKeeper has its records as well: its next start writes them here again"
        else:
            way_out = (
                "Bring the directory back from a copy. Without one, spark.sql.streaming.stateStore.ckpt.store="
                "standalone goes on from the newest checkpoint whose _metadata is whole; it keeps no log and has no "
                "fence"
            )
        super().__init__(
            f"{path} has no records, and the checkpoints of this location were completed with the store '{store}', "
            f"which keeps them there: they were deleted. {way_out}"
        )


class CheckpointError(SparkCkptError):
    """Something about a checkpoint that keeps it from being taken or restored."""


class SavepointLocationError(CheckpointError):
    """A savepoint where a checkpoint location was to be.

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
    """A completed checkpoint lacks a file, or has one that is not what was written.

    Attributes:
        path: the file.
        checkpoint_id: the checkpoint.
        newest_good: id of the newest retained checkpoint that is whole, or None.
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
        """Problem, without the way out."""
        return f"checkpoint {self.checkpoint_id} is damaged: {self.path}: {self.reason}"
