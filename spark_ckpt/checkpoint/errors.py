"""Errors of a checkpoint in storage."""

from __future__ import annotations

from collections.abc import Mapping

from spark_ckpt.errors import CheckpointError

NO_OTHER_IS_WHOLE = (
    "No other retained checkpoint is intact: restore the file from a backup, or start the query with a new checkpoint "
    "location"
)
"""Remedy for damage without an intact checkpoint to go back to."""

NO_WAY_BACK = (
    "Spark's logs lack the entries for a start after any of them: restore the directories offsets/ and commits/ from a "
    "copy, or start the query with a new checkpoint location"
)
"""Remedy for a version without a checkpoint if no rollback is possible."""


def go_back(location: str, checkpoint_id: int) -> str:
    """Remedy for a version without a checkpoint, given one to go back to."""
    return (
        f"Go back to one of them: spark-ckpt rollback {location} --id {checkpoint_id}. To retain more, set "
        "spark.sql.streaming.stateStore.ckpt.retained"
    )


class StateIdMismatchError(CheckpointError):
    """State id of Spark or of a task that differs from the checkpoint's."""


class MetadataTooLargeError(CheckpointError):
    """Checkpoint with so many segments that no reader would accept its `_metadata`. It is not written.

    Attributes:
        most: limit in bytes for the segment tables of a `_metadata`.
    """

    def __init__(self, most: int) -> None:
        super().__init__(
            f"the segment tables of this checkpoint exceed {most:,} bytes, the most that a reader accepts: the chains "
            "of its subtasks are too long for their number. Start the query again with a smaller "
            "spark.sql.streaming.stateStore.ckpt.chain.maxDeltas: its subtasks then write base snapshots"
        )
        self.most = most


class VersionNotFoundError(CheckpointError):
    """Requested version without a retained checkpoint.

    Attributes:
        version: requested version.
        available: retained versions.
    """

    fatal = True

    def __init__(self, location: str, version: int, checkpoints: Mapping[int, int], hint: str = "") -> None:
        """Create the error.

        Args:
            location: checkpoint location.
            version: requested version.
            checkpoints: versions of the retained checkpoints by id, ascending.
            hint: remedy that replaces the usual one.
        """
        self.location = location
        self.version = version
        self.available = tuple(sorted(set(checkpoints.values())))
        if checkpoints:
            there = ", ".join(f"{i} (version {found})" for i, found in checkpoints.items())
            there = f"the retained checkpoints are {there}"
            otherwise = go_back(location, max(checkpoints))
        else:
            there = "no checkpoint is retained"
            otherwise = "Restore its directory ckpt/ from a copy, or start the query with a new checkpoint location"
        super().__init__(f"{self.what}; {there}. {hint or otherwise}")

    @property
    def what(self) -> str:
        """Problem without the remedy."""
        version = self.version
        return f"{self.location}: no completed checkpoint has version {version} (the state before batch {version})"
