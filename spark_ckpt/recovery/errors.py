"""Errors of damaged queries."""

from __future__ import annotations

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.completed.errors import DamagedRecordError
from spark_ckpt.errors import CheckpointError, DamagedCheckpointError


class ParallelismChangedError(CheckpointError):
    """Number of partitions or key groups that differs from the checkpoint's."""

    fatal = True


class QueryChangedError(CheckpointError):
    """Query whose state would mean something else than that of the checkpoint. Spark does not notice.

    Attributes:
        location: checkpoint location.
        changes: the changes, as text.
    """

    fatal = True

    def __init__(self, location: str, changes: tuple[str, ...], setting: str) -> None:
        self.location = location
        self.changes = changes
        super().__init__(
            f"{location}: the query has changed, and its state would mean something else: {'; '.join(changes)}. "
            "Convert the state with 'spark-ckpt evolve', which says what becomes of it; or start the earlier query "
            f"again; or, if both mean the same, start once with {setting}=warn. The state was not changed"
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
