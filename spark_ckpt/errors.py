"""The errors of spark-ckpt: one base class, and a specific class for each thing that can be wrong.

Every error names the thing that is wrong (a file, an offset, a setting) and says what to do about it. What a caller
needs in order to act stands in attributes, not only in the text.
"""

from __future__ import annotations

from collections.abc import Sequence


class SparkCkptError(Exception):
    """Base class of every error that spark-ckpt raises on purpose."""


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


# ---- settings and messages -------------------------------------------------------------------------------------------


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


# ---- storage ---------------------------------------------------------------------------------------------------------


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


class ZooKeeperUnavailableError(StorageError):
    """No ZooKeeper server answers.

    Attributes:
        address: the servers, without credentials.
    """

    def __init__(self, address: str, path: str, reason: object) -> None:
        super().__init__(
            f"{address}{path}",
            "reach",
            f"{reason}. See that the servers run and can be reached from the driver, and that "
            "spark.sql.streaming.stateStore.ckpt.zookeeper.quorum names them",
        )
        self.address = address


class KazooNotFoundError(SparkCkptError, ImportError):
    """The store is `zookeeper`, and there is no kazoo in this Python environment."""

    def __init__(self) -> None:
        super().__init__(
            "the store 'zookeeper' needs kazoo, which is not installed here: pip install 'spark-ckpt[zookeeper]'"
        )


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


# ---- completed checkpoints -------------------------------------------------------------------------------------------


LEAVE_OUT_RECORD = (
    "Move the file aside and start the query again: the checkpoint it names is then left out, and the others remain"
)
"""What to do about a damaged record of a checkpoint location."""


class CorruptRecordError(SparkCkptError, ValueError):
    """A record of a completed checkpoint that cannot be what was written.

    Attributes:
        path: the record's file.
    """

    def __init__(self, path: str, reason: str, way_out: str = LEAVE_OUT_RECORD) -> None:
        self.path = path
        super().__init__(f"{path}: {reason}. The record was damaged after it was written. {way_out}")


class LogInTheWayError(SparkCkptError):
    """A location whose completed checkpoints are in a log, and a store that would not keep it.

    Attributes:
        path: the directory of the log.
    """

    fatal = True

    def __init__(self, path: str, records: int) -> None:
        self.path = path
        super().__init__(
            f"{path} has {records} records of completed checkpoints, which the store 'standalone' neither reads nor "
            "keeps. Set spark.sql.streaming.stateStore.ckpt.store to the store that the query was run with; or, if no "
            "other driver uses the location, move that directory aside"
        )


class FencedError(SparkCkptError):
    """Another driver owns the checkpoint location now; this one can complete nothing more.

    Attributes:
        path: the record that this driver wanted to write.
        generation: generation of this driver.
        owner_generation: generation of the one that has taken over.
        owner: who that is, for a person.
    """

    fatal = True

    def __init__(self, path: str, generation: int, owner_generation: int, owner: str) -> None:
        self.path = path
        self.generation = generation
        self.owner_generation = owner_generation
        self.owner = owner
        super().__init__(
            f"{owner} has taken over this checkpoint location with generation {owner_generation}; this driver has "
            f"generation {generation} and can complete no checkpoint any more ({path}). Nothing is lost: stop this "
            "query, and let only one driver use a checkpoint location"
        )


class OwnershipLostError(FencedError):
    """This driver's node in ZooKeeper is gone, and nobody has taken over: its session has expired, most likely.

    It completes nothing more, since another driver may take over at any moment.
    """

    def __init__(self, path: str, generation: int) -> None:
        SparkCkptError.__init__(
            self,
            f"{path} is gone, with which this driver (generation {generation}) owned its checkpoint location: its "
            "session with ZooKeeper has expired, or the node was deleted. It can complete no checkpoint any more. "
            "Nothing is lost: start the query again. If it happens often, see why the driver stands still or is cut "
            "off for so long, or set spark.sql.streaming.stateStore.ckpt.zookeeper.sessionTimeout higher",
        )
        self.path = path
        self.generation = generation
        self.owner_generation = generation
        self.owner = ""


class LocationMovedError(SparkCkptError):
    """A node in ZooKeeper that belongs to another checkpoint location of the same query.

    Attributes:
        node: the node.
        recorded: the location that it belongs to.
        location: the one at hand.
    """

    fatal = True

    def __init__(self, node: str, recorded: str, location: str) -> None:
        self.node = node
        self.recorded = recorded
        self.location = location
        super().__init__(
            f"{node} belongs to {recorded}, and this query runs on {location}. If the directory was moved, or is now "
            "named otherwise, delete the node: its records are in ckpt/completed too, and are taken over from there. "
            "If this is a copy, give it another spark.sql.streaming.stateStore.ckpt.zookeeper.path"
        )


class UnknownOutcomeError(SparkCkptError):
    """A record may or may not have been written, and the storage does not say.

    Flink's `PossibleInconsistentStateException`: what the record refers to must be kept until the outcome is known.

    Attributes:
        path: the record's file.
    """

    def __init__(self, path: str, cause: BaseException | None) -> None:
        self.path = path
        super().__init__(
            f"{path}: it is unknown whether this record was written ({cause!r}). Its files are kept; the next "
            "attempt settles it first. Look at the storage, then start the query again"
        )


# ---- checkpoints -----------------------------------------------------------------------------------------------------


class CheckpointError(SparkCkptError):
    """Something about a checkpoint that keeps it from being taken or restored."""


class JobNotOpenError(CheckpointError):
    """A message for a job that no `trigger` has opened, or that is closed."""

    def __init__(self, job: str) -> None:
        self.job = job
        super().__init__(f"job {job} is not open: no trigger came before, or the query has ended")


class ForeignStateError(CheckpointError):
    """The location holds state that another state-store provider wrote.

    Attributes:
        path: one of the files found.
    """

    fatal = True

    def __init__(self, location: str, path: str, version: int) -> None:
        self.location = location
        self.path = path
        super().__init__(
            f"{location} has state of another state-store provider ({path}) and no checkpoint of ours, so version "
            f"{version} cannot be restored from it. Start the query with the provider it was started with, or with a "
            "new checkpoint location"
        )


class ParallelismChangedError(CheckpointError):
    """The query runs with other numbers of partitions or key groups than its checkpoint has."""

    fatal = True


class VersionNotFoundError(CheckpointError):
    """No retained checkpoint has the version that Spark asks for.

    Attributes:
        version: the version asked for.
        available: the versions there are.
    """

    fatal = True

    def __init__(self, location: str, version: int, available: tuple[int, ...], hint: str = "") -> None:
        self.location = location
        self.version = version
        self.available = available
        there = f"there are {', '.join(map(str, available))}" if available else "there are none"
        if available:
            otherwise = (
                "Go back to a batch whose checkpoint is retained, with spark-ckpt rollback; more are kept with "
                "spark.sql.streaming.stateStore.ckpt.retained"
            )
        else:
            otherwise = "Bring its directory ckpt/ back from a copy, or start the query with a new checkpoint location"
        way_out = hint or otherwise
        super().__init__(
            f"{location}: no completed checkpoint has version {version} (the state before batch {version}); {there}. "
            f"{way_out}"
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
        super().__init__(f"checkpoint {checkpoint_id} is damaged: {path}: {reason}. {way_out}")


class RolledBackError(CheckpointError):
    """The checkpoint that a query was to start from is damaged, and the query has gone back to an earlier one.

    Attributes:
        damaged: what is wrong with it.
        checkpoint_id: the checkpoint that the query goes on from.
    """

    fatal = True

    def __init__(self, damaged: DamagedCheckpointError, checkpoint_id: int, batch_id: int, aside: str) -> None:
        self.damaged = damaged
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"checkpoint {damaged.checkpoint_id} is damaged: {damaged.path}: {damaged.reason}. The query has gone back "
            f"to checkpoint {checkpoint_id}, and what came after its batch {batch_id} lies in {aside}. Start the query "
            f"again: it goes on with batch {batch_id + 1}"
        )


class CollectionRefusedError(CheckpointError):
    """Orphans cannot be told from what is needed.

    Attributes:
        checkpoint_id: the checkpoint that cannot be read.
    """

    def __init__(self, location: str, checkpoint_id: int, cause: SparkCkptError) -> None:
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"{location}: checkpoint {checkpoint_id} cannot be read, so its state files would be taken for orphans. "
            f"Nothing was deleted. The cause: {cause}"
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


class StateIdMismatchError(CheckpointError):
    """The state that Spark or a task names is not the state that the checkpoint holds."""


class IncompleteCheckpointError(CheckpointError):
    """The batch before did not complete its checkpoint, because subtasks of it did not run.

    Attributes:
        version: the version that was not completed.
        missing: the subtasks that did not acknowledge, for a person.
    """

    fatal = True

    def __init__(self, version: int, missing: str) -> None:
        self.version = version
        self.missing = missing
        batch = version - 1
        super().__init__(
            f"version {version} of the state is not complete: {missing} did not acknowledge. A batch must consume all "
            f"partitions of its DataFrame (foreachBatch functions too); start the query again, and batch {batch} is "
            f"repeated. If Spark has committed it already, first move commits/{batch} and offsets/{batch + 1} aside"
        )


class TooManyFailuresError(CheckpointError):
    """A checkpoint could not be completed, more often in a row than the query's settings tolerate.

    Attributes:
        batch_id: the batch.
        causes: what failed, and how often, since a checkpoint was last completed.
    """

    def __init__(self, batch_id: int, tolerable: int, causes: dict[str, int], setting: str) -> None:
        self.batch_id = batch_id
        self.causes = causes
        failures = sum(causes.values())
        times = "; ".join(f"{cause} ({count} times)" if count > 1 else cause for cause, count in causes.items())
        super().__init__(
            f"the checkpoint of batch {batch_id} could not be completed: {failures} failures in a row, of which "
            f"{tolerable} are tolerated ({setting}): {times}. Spark runs the task again, and then the query can be "
            "started again; nothing that was complete is lost. Look at the storage"
        )


class SegmentError(SparkCkptError, ValueError):
    """A state file whose bytes are not a sequence of blocks (docs/protocol.md, section 2).

    Attributes:
        path: the file.
        offset: byte position, counted from the start of the file.
    """

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path}: {reason} (byte {offset})")
        self.path = path
        self.offset = offset
        self.reason = reason
