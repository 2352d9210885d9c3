"""Errors of a checkpoint in storage."""

from __future__ import annotations

from collections.abc import Mapping

from spark_ckpt.errors import CheckpointError

NO_OTHER_IS_WHOLE = (
    "No other retained checkpoint is whole: restore the file from a backup, or start the query with a new checkpoint "
    "location"
)
"""What to do about damage where there is no way back."""


class StateIdMismatchError(CheckpointError):
    """The state that Spark or a task names is not the state that the checkpoint holds."""


class VersionNotFoundError(CheckpointError):
    """No retained checkpoint has the version that Spark asks for.

    Attributes:
        version: the version asked for.
        available: the versions there are.
    """

    fatal = True

    def __init__(self, location: str, version: int, checkpoints: Mapping[int, int], hint: str = "") -> None:
        """Says which checkpoints there are.

        Args:
            location: the checkpoint location.
            version: the version asked for.
            checkpoints: the versions of the retained checkpoints by their ids, ascending.
            hint: another way out than the usual one.
        """
        self.location = location
        self.version = version
        self.available = tuple(sorted(set(checkpoints.values())))
        if checkpoints:
            there = ", ".join(f"{i} (version {found})" for i, found in checkpoints.items())
            there = f"the retained checkpoints are {there}"
            otherwise = (
                f"Go back to one of them: spark-ckpt rollback {location} --id {max(checkpoints)}. More are kept with "
                "spark.sql.streaming.stateStore.ckpt.retained"
            )
        else:
            there = "there is no completed checkpoint at all"
            otherwise = "Bring its directory ckpt/ back from a copy, or start the query with a new checkpoint location"
        super().__init__(f"{self.what}; {there}. {hint or otherwise}")

    @property
    def what(self) -> str:
        """Problem, without the way out."""
        version = self.version
        return f"{self.location}: no completed checkpoint has version {version} (the state before batch {version})"
