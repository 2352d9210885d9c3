"""Errors of operations."""

from __future__ import annotations

from spark_ckpt.errors import CheckpointError, SparkCkptError


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


class TagRefusedError(SparkCkptError):
    """A checkpoint cannot get a tag. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        reason: cause and remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: no tag can be given: {reason}")
        self.location = location
        self.reason = reason


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


class OffsetsRefusedError(SparkCkptError):
    """The sources of a query cannot continue as requested. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        reason: cause and remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: the offsets cannot be moved: {reason}")
        self.location = location
        self.reason = reason
