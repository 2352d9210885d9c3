"""Errors of a running query's checkpoints."""

from __future__ import annotations

from spark_ckpt.errors import CheckpointError, SparkCkptError


class BatchCommittedError(SparkCkptError):
    """Batch of this run that an earlier driver has already committed. That driver is fenced now. Spark planned this run
    before that commit, so only another start continues after it.

    Attributes:
        location: checkpoint location.
        batch_id: committed batch.
        owner: earlier driver, as text.
    """

    fatal = True

    def __init__(self, location: str, batch_id: int, owner: str) -> None:
        self.location = location
        self.batch_id = batch_id
        self.owner = owner
        super().__init__(
            f"{location}: {owner} committed batch {batch_id} while this query was about to run it. That driver is "
            "fenced now and completes no more batches. Nothing is lost. Start this query again: it continues after the "
            "last committed batch"
        )


class IncompleteCheckpointError(CheckpointError):
    """Incomplete checkpoint of the previous batch, some of whose subtasks did not run.

    Attributes:
        version: incomplete version.
        missing: subtasks without an acknowledgement, as text.
    """

    fatal = True

    def __init__(self, version: int, missing: str) -> None:
        self.version = version
        self.missing = missing
        batch = version - 1
        super().__init__(
            f"state version {version} is incomplete: {missing} did not acknowledge. A batch must consume all "
            f"partitions of its DataFrame, in foreachBatch functions too. Start the query again: it repeats batch "
            f"{batch}. If Spark has already committed that batch, first move commits/{batch} and offsets/{batch + 1} "
            "away"
        )


class RealTimeBatchIncompleteError(CheckpointError):
    """Batch in real-time mode that ended without a complete checkpoint. Spark has written neither its offsets nor its
    commit.

    Attributes:
        batch_id: Spark's micro-batch.
        reason: subtasks without an acknowledgement, or the reason of an abort, as text.
    """

    fatal = True

    def __init__(self, batch_id: int, reason: str) -> None:
        self.batch_id = batch_id
        self.reason = reason
        super().__init__(
            f"batch {batch_id} has ended without a checkpoint: {reason}. Spark has not committed it. Start the query "
            "again: it processes the input of this batch again"
        )


class RollbackBegunError(CheckpointError):
    """An automatic rollback of the run has begun and failed, so the run completes no more checkpoints."""

    fatal = True

    def __init__(self, location: str) -> None:
        super().__init__(
            f"{location}: the rollback of this query has begun and is not complete, so this run completes no more "
            f"checkpoints. Stop the query and finish the rollback with: spark-ckpt rollback {location}"
        )


class TooManyFailuresError(CheckpointError):
    """More consecutive storage failures than the query's settings tolerate.

    Attributes:
        batch_id: batch of the checkpoint.
        causes: failures since the last completed checkpoint, with counts.
    """

    def __init__(self, batch_id: int, tolerable: int, causes: dict[str, int], setting: str) -> None:
        self.batch_id = batch_id
        self.causes = causes
        failures = sum(causes.values())
        times = "; ".join(f"{cause} ({count} times)" if count > 1 else cause for cause, count in causes.items())
        super().__init__(
            f"cannot complete the checkpoint of batch {batch_id}: {failures} consecutive failures, {tolerable} are "
            f"tolerated ({setting}): {times}. Repair the storage. Spark retries the task; if the query ends, start it "
            "again. No completed checkpoint is lost"
        )
