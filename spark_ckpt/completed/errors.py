"""Errors of the completed-checkpoint log."""

from __future__ import annotations

import sys

from spark_ckpt.errors import SparkCkptError, StorageError

RESTORE_RECORD = (
    "Restore the file from a backup, or roll back to an intact checkpoint: 'spark-ckpt verify' names it, and "
    "'spark-ckpt rollback' moves the record aside"
)
"""Advice on a damaged record of a checkpoint location."""


class DamagedRecordError(SparkCkptError, ValueError):
    """A record of the log is damaged: its content cannot be the one that was written.

    Attributes:
        path: the record's file.
        reason: problem with the content.
    """

    fatal = True

    def __init__(self, path: str, reason: str, way_out: str = RESTORE_RECORD) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{self.what}. The record was damaged after it was written. {way_out}")

    @property
    def what(self) -> str:
        """Problem, without the advice."""
        return f"{self.path}: {self.reason}"


class ZooKeeperUnavailableError(StorageError):
    """No ZooKeeper server answers.

    Attributes:
        address: the servers, without credentials.
    """

    def __init__(self, address: str, path: str, reason: object) -> None:
        super().__init__(
            f"{address}{path}",
            "reach",
            f"{reason}. Check that the servers are running and reachable from the driver, and that "
            "spark.sql.streaming.stateStore.ckpt.zookeeper.quorum lists them",
        )
        self.address = address


class ZooKeeperAccessError(StorageError):
    """ZooKeeper refuses this driver the connection, or access to its nodes.

    Attributes:
        address: the servers, without credentials.
    """

    def __init__(self, address: str, path: str, reason: object) -> None:
        super().__init__(
            f"{address}{path}",
            "use",
            f"{reason}. Check that spark.sql.streaming.stateStore.ckpt.zookeeper.clientFile names the identity that "
            "created this query's nodes, or another identity known to the servers",
        )
        self.address = address


class ZooKeeperClientFileError(SparkCkptError, ValueError):
    """The file of the setting `zookeeper.clientFile` cannot be used.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: {reason}. The setting spark.sql.streaming.stateStore.ckpt.zookeeper.clientFile names it; "
            "docs/high-availability.md has an example"
        )


class KazooNotFoundError(SparkCkptError, ImportError):
    """The store is `zookeeper`, but this Python environment has no kazoo."""

    def __init__(self) -> None:
        super().__init__(
            f"the store 'zookeeper' needs kazoo, which is not installed for {sys.executable}: "
            f"{sys.executable} -m pip install 'spark-ckpt[zookeeper]'"
        )


class StoreMismatchError(SparkCkptError):
    """The location has a log of completed checkpoints that the configured store would not maintain.

    Attributes:
        path: directory of the log.
    """

    fatal = True

    def __init__(self, path: str, records: int) -> None:
        self.path = path
        super().__init__(
            f"{path} has {records} records of completed checkpoints, which the store 'standalone' neither reads nor "
            "writes. Set spark.sql.streaming.stateStore.ckpt.store to the query's previous store or, if no other "
            "driver uses the location, move that directory aside"
        )


class FencedError(SparkCkptError):
    """Another driver has taken over the checkpoint location; this one can no longer complete checkpoints.

    Attributes:
        path: record that this driver tried to write.
        generation: generation of this driver.
        owner_generation: generation of the new owner.
        owner: human-readable name of the new owner.
    """

    fatal = True

    def __init__(self, path: str, generation: int, owner_generation: int, owner: str) -> None:
        self.path = path
        self.generation = generation
        self.owner_generation = owner_generation
        self.owner = owner
        super().__init__(
            f"{owner} has taken over this checkpoint location with generation {owner_generation}; this driver has "
            f"generation {generation} and can no longer complete checkpoints ({path}). Nothing is lost: stop this "
            "query, and run only one driver per checkpoint location"
        )


class SupersededRunError(FencedError):
    """A newer run of the same driver has claimed the location, whose store has no fence.

    Attributes:
        run_id: id of the newer run.
    """

    def __init__(self, location: str, generation: int, owner_generation: int, run_id: str) -> None:
        self.path = location
        self.generation = generation
        self.owner_generation = owner_generation
        self.owner = f"run {run_id}"
        self.run_id = run_id
        SparkCkptError.__init__(
            self,
            f"{location}: run {run_id} of the same driver now uses this checkpoint location; this run no longer "
            "completes or deletes checkpoints. Run one query at a time per checkpoint location",
        )


class ClaimDeletedError(FencedError):
    """The file of this driver's claim is gone, and no other driver has claimed: it was deleted from outside."""

    def __init__(self, path: str, generation: int) -> None:
        SparkCkptError.__init__(
            self,
            f"{path}, this driver's claim to its checkpoint location (generation {generation}), was deleted, and no "
            "other driver has claimed the location. This driver can no longer complete checkpoints. Nothing is lost: "
            "start the query again, and let no other program delete files below ckpt/completed",
        )
        self.path = path
        self.generation = generation
        self.owner_generation = generation
        self.owner = ""


class OwnershipLostError(FencedError):
    """This driver's owner node in ZooKeeper is gone without a new owner, most likely because its session expired.

    The driver completes no more checkpoints, since another one may take over at any moment.
    """

    def __init__(self, path: str, generation: int) -> None:
        SparkCkptError.__init__(
            self,
            f"{path}, with which this driver (generation {generation}) owned its checkpoint location, is gone: the "
            "driver's ZooKeeper session expired, or the node was deleted. This driver can no longer complete "
            "checkpoints. Nothing is lost: start the query again. If this recurs, look for long pauses or network "
            "failures of the driver, or raise spark.sql.streaming.stateStore.ckpt.zookeeper.sessionTimeout",
        )
        self.path = path
        self.generation = generation
        self.owner_generation = generation
        self.owner = ""


class LocationMovedError(SparkCkptError):
    """The ZooKeeper node belongs to another checkpoint location of the same query.

    Attributes:
        node: the node.
        recorded: location that the node names.
        location: location of this query.
    """

    fatal = True

    def __init__(self, node: str, recorded: str, location: str) -> None:
        self.node = node
        self.recorded = recorded
        self.location = location
        super().__init__(
            f"{node} belongs to {recorded}, but this query runs on {location}. If the directory was moved or renamed, "
            "delete the node: its records are also in ckpt/completed, and are taken over from there. If this is a "
            "copy, set another spark.sql.streaming.stateStore.ckpt.zookeeper.path"
        )


class UnknownOutcomeError(SparkCkptError):
    """A record may or may not have been written, and the storage cannot tell.

    Flink: `PossibleInconsistentStateException`. The files that the record refers to stay until the outcome is known.

    Attributes:
        path: the record's file.
    """

    def __init__(self, path: str, cause: BaseException | None) -> None:
        self.path = path
        super().__init__(
            f"{path}: it is unknown whether this record was written ({cause!r}). Its files are kept; the next "
            "start settles the outcome first. Check the storage, then start the query again"
        )
