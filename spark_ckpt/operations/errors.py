"""Errors of operations."""

from __future__ import annotations

from datetime import datetime, timezone

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.completed.errors import CorruptRecordError
from spark_ckpt.errors import CheckpointError, DamagedCheckpointError, SparkCkptError


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


class LocationInUseError(SparkCkptError):
    """A driver may be running the query of a location that an operation was to change. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        owner: the driver that has claimed last, for a person.
        is_known: True if the driver is known to run; if not, it ran elsewhere.
        last_ms: when its newest record was written, in milliseconds since 1970 UTC.
    """

    def __init__(self, location: str, owner: str, is_known: bool, last_ms: int) -> None:
        known = (
            "is running"
            if is_known
            else "ran on another host, in another container, before the last boot, or an earlier release: nobody can "
            "tell from here whether it still does"
        )
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


class SubsumedDuringCopyError(SparkCkptError):
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


class RolledBackError(CheckpointError):
    """Automatic rollback from a damaged checkpoint to an earlier one.

    Attributes:
        damaged: damage of the checkpoint or of its record.
        checkpoint_id: checkpoint that the query continues from.
    """

    fatal = True

    def __init__(
        self,
        damaged: DamagedCheckpointError | CorruptRecordError | VersionNotFoundError,
        checkpoint_id: int,
        batch_id: int,
        rollback_dir: str,
    ) -> None:
        self.damaged = damaged
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"{damaged.what}. The query was rolled back to checkpoint {checkpoint_id} of batch {batch_id}; files of "
            f"later batches are in {rollback_dir}. Start the query again: it continues with batch {batch_id + 1}"
        )
