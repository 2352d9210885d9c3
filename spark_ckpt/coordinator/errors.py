"""Errors of a running query's checkpoints."""

from __future__ import annotations

from spark_ckpt.errors import CheckpointError, SparkCkptError


class BatchCommittedError(SparkCkptError):
    """An earlier driver has committed the batch that this one is about to run. That driver is shut out now; Spark has
    planned this run from before that batch, so only another start continues after it.

    Attributes:
        location: the checkpoint location.
        batch_id: the batch.
        owner: the earlier driver, for a person.
    """

    fatal = True

    def __init__(self, location: str, batch_id: int, owner: str) -> None:
        self.location = location
        self.batch_id = batch_id
        self.owner = owner
        super().__init__(
            f"{location}: {owner} has committed batch {batch_id} while this query was about to run it. That driver is "
            "shut out now and completes no batch any more, and nothing is lost. Start this query again: it goes on "
            "after the last batch that is committed"
        )


class JobNotOpenError(CheckpointError):
    """A message for a job that no `trigger` has opened, or that is closed."""

    def __init__(self, job: str) -> None:
        self.job = job
        super().__init__(f"job {job} is not open: no trigger came before, or the query has ended")


class ParallelismChangedError(CheckpointError):
    """The query runs with other numbers of partitions or key groups than its checkpoint has."""

    fatal = True


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
            f"{tolerable} are tolerated ({setting}): {times}. Mend the storage. Spark retries the task; if "
            "the query ends all the same, start it again. No completed checkpoint is lost"
        )
