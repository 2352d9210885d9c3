"""What keeps an operation from being done."""

from __future__ import annotations

from datetime import datetime, timezone

from spark_ckpt.errors import SparkCkptError


class NoCheckpointError(SparkCkptError):
    """No checkpoint of a location is complete.

    Attributes:
        location: the checkpoint location.
    """

    def __init__(self, location: str) -> None:
        super().__init__(f"{location}: no checkpoint has completed here yet")
        self.location = location


class RescaleRefusedError(SparkCkptError):
    """The number of partitions of a location cannot be changed as asked. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        partitions: the number asked for.
        reason: why not, and what to do.
    """

    def __init__(self, location: str, partitions: int, reason: str) -> None:
        super().__init__(f"{location} cannot be rescaled to {partitions} partitions: {reason}")
        self.location = location
        self.partitions = partitions
        self.reason = reason


class SparkLogFormatError(SparkCkptError, ValueError):
    """A file of Spark's own in a checkpoint location that is not what Spark writes.

    Attributes:
        path: the file.
        reason: what is wrong with it.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}. It was damaged, or written by a version of Spark that this release does not know: "
            "bring it back from a copy, or upgrade spark-ckpt"
        )
        self.path = path
        self.reason = reason


class SparkLogEntryExistsError(SparkCkptError, FileExistsError):
    """A file of Spark's log is there already, with other content: somebody else is writing this log.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is there already, and is never overwritten: stop the query, then try again")
        self.path = path


class LocationInUseError(SparkCkptError):
    """A driver may be running the query of a location that an operation was to change. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        owner: the driver that has claimed last, for a person.
        is_known: whether the driver is known to run; if not, it ran on another host.
        last_ms: when its newest record was written, in milliseconds since 1970 UTC.
    """

    def __init__(self, location: str, owner: str, is_known: bool, last_ms: int) -> None:
        known = "is running" if is_known else "ran on another host, and nobody can tell from here whether it still does"
        last = datetime.fromtimestamp(last_ms / 1000, timezone.utc).isoformat(timespec="seconds")
        super().__init__(
            f"{location} belongs to {owner}, which {known}. Its last record is of {last}. Stop the query first. If you "
            "know that it does not run, say --force: should it run all the same, it is shut out, and "
            "completes no checkpoint any more"
        )
        self.location = location
        self.owner = owner
        self.is_known = is_known
        self.last_ms = last_ms


class RollbackRefusedError(SparkCkptError):
    """The query cannot go back to a checkpoint. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        checkpoint_id: the checkpoint.
        reason: why not.
    """

    def __init__(self, location: str, checkpoint_id: int, reason: str) -> None:
        super().__init__(f"{location}: the query cannot go back to checkpoint {checkpoint_id}: {reason}")
        self.location = location
        self.checkpoint_id = checkpoint_id
        self.reason = reason


class NotCommittedError(SparkCkptError):
    """Spark cannot go on after the batch of a checkpoint: it has not committed it yet, or has purged its logs of it.

    Attributes:
        location: the checkpoint location.
        checkpoint_id: the checkpoint.
        batch_id: its batch.
    """

    def __init__(self, location: str, checkpoint_id: int, batch_id: int) -> None:
        super().__init__(
            f"{location}: Spark's logs have no commit of batch {batch_id}, or not the offsets before it, and a query "
            f"cannot go on from checkpoint {checkpoint_id} without them. If the batch is running, try again once it is "
            "done; of purged batches more are kept with spark.sql.streaming.minBatchesToRetain"
        )
        self.location = location
        self.checkpoint_id = checkpoint_id
        self.batch_id = batch_id


class TargetNotEmptyError(SparkCkptError, FileExistsError):
    """There is something where a savepoint or a new checkpoint location was to be.

    Attributes:
        target: the directory.
    """

    def __init__(self, target: str) -> None:
        super().__init__(
            f"{target} is not empty, and nothing is overwritten: name a new directory. If a copy to it was "
            "interrupted, delete it first"
        )
        self.target = target


class OutrunError(SparkCkptError):
    """A query drops its checkpoints faster than one can be copied.

    Attributes:
        location: the checkpoint location.
        tries: how many checkpoints were begun with.
    """

    def __init__(self, location: str, tries: int) -> None:
        super().__init__(
            f"{location}: each of {tries} checkpoints was dropped while it was copied. Start the query with a higher "
            "spark.sql.streaming.stateStore.ckpt.retained, or stop it for the copy. The target is incomplete: delete it"
        )
        self.location = location
        self.tries = tries
