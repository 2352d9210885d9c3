"""Errors of operations."""

from __future__ import annotations

from datetime import datetime, timezone

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import CheckpointError, DamagedCheckpointError, SparkCkptError


class RescaleRefusedError(SparkCkptError):
    """A location cannot be rescaled as requested. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        partitions: requested number of partitions.
        reason: cause and remedy.
    """

    def __init__(self, location: str, partitions: int, reason: str) -> None:
        super().__init__(f"{location} cannot be rescaled to {partitions} partitions: {reason}")
        self.location = location
        self.partitions = partitions
        self.reason = reason


class TransferRefusedError(SparkCkptError):
    """The state of a location cannot be imported or exported, or an import cannot be undone. Nothing was switched.

    Attributes:
        location: the checkpoint location.
        reason: cause and remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location
        self.reason = reason


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


class QueryMayRunError(SparkCkptError):
    """A query without claims has written a short time ago. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        path: its newest file.
        age_seconds: age of that file.
    """

    def __init__(self, location: str, path: str, age_seconds: int, quiet_seconds: int) -> None:
        super().__init__(
            f"{location}: {path} was written {age_seconds} s ago, so the query may be running. Its provider leaves no "
            f"other sign. Stop the query, wait until {quiet_seconds} s have passed, and run the command again. If you "
            "are sure that the query is not running, pass --force"
        )
        self.location = location
        self.path = path
        self.age_seconds = age_seconds


class StateTransferError(SparkCkptError):
    """A Spark job that reads or writes state has failed. Nothing was switched.

    Attributes:
        kind: what failed: `SourceStateError`, `TargetStateError`, `RowPartitionError`, `ImportedStateError`,
            `ExportedStateError`, `StateSchemaError`, `StateIdMismatchError` or `JobFailedError`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"[{kind}] {message}")
        self.kind = kind


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


class RollbackRefusedError(SparkCkptError):
    """The query cannot be rolled back to a checkpoint. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        checkpoint_id: the checkpoint.
        reason: cause and remedy.
    """

    def __init__(self, location: str, checkpoint_id: int, reason: str) -> None:
        super().__init__(f"{location}: the query cannot be rolled back to checkpoint {checkpoint_id}: {reason}")
        self.location = location
        self.checkpoint_id = checkpoint_id
        self.reason = reason


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


class TargetNotEmptyError(SparkCkptError, FileExistsError):
    """The target of a savepoint or restore is not empty.

    Attributes:
        target: the directory.
    """

    def __init__(self, target: str) -> None:
        super().__init__(
            f"{target} is not empty, and existing files are never overwritten: choose a new directory. If it holds an "
            "interrupted copy, delete it first"
        )
        self.target = target


class SubsumedDuringCopyError(SparkCkptError):
    """A query subsumes its checkpoints faster than one can be copied.

    Attributes:
        location: the checkpoint location.
        tries: number of checkpoints attempted.
    """

    def __init__(self, location: str, tries: int) -> None:
        super().__init__(
            f"{location}: each of {tries} checkpoints was subsumed during its copy. Restart the query with a higher "
            "spark.sql.streaming.stateStore.ckpt.retained, or stop it for the copy. The target is incomplete: delete it"
        )
        self.location = location
        self.tries = tries


class CollectionRefusedError(CheckpointError):
    """Orphans cannot be told from files in use, because a checkpoint is unreadable. Nothing was deleted.

    Attributes:
        checkpoint_id: the unreadable checkpoint.
    """

    def __init__(self, location: str, checkpoint_id: int, cause: SparkCkptError) -> None:
        self.checkpoint_id = checkpoint_id
        super().__init__(
            f"{location}: checkpoint {checkpoint_id} cannot be read, so its state files would count as orphans. "
            f"Nothing was deleted. Cause: {cause}"
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
        damaged: DamagedCheckpointError | DamagedRecordError | VersionNotFoundError,
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
