"""Takeover from a running driver: the newer claim always wins.

Spark plans a run from its own logs before it calls our code. A busy earlier driver commits batches meanwhile. The newer
driver still claims, which fences the earlier one. The second start then finds logs that no longer change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.completed import ClaimRecord, CompletedCheckpointStore, Record
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.coordinator.errors import BatchCommittedError
from spark_ckpt.location.driver_liveness import Liveness, last_driver_of
from spark_ckpt.messages import Trigger
from spark_ckpt.recovery.parallelism import check_parallelism
from spark_ckpt.storage import Request, Storage

if TYPE_CHECKING:
    from spark_ckpt.coordinator.open_job import Environment

_POLL_SECONDS = 0.25


def check_not_followed(trigger: Trigger, storage: Storage, store: CompletedCheckpointStore) -> None:
    """Check that no later run has claimed. A fenced run stays fenced, even if its restarted side process could claim
    again.

    Raises:
        FencedError: a later run has claimed.
    """
    claims = store.claims()
    own = [claim.id for claim in claims if claim.owner.run_id == trigger.job]
    if own and (last := [claim for claim in claims if claim.owner.run_id != trigger.job][-1:]) and last[0].id > own[0]:
        raise FencedError(storage.location, store.generation, last[0].generation, str(last[0].owner))


def is_committed(trigger: Trigger, storage: Storage) -> Request[bool]:
    """Begin to look for the commit of the batch. The answer raises a StorageError if the log cannot be read."""
    return storage.begin(lambda: storage.exists(_commit(trigger)))


def committed_by_another(
    trigger: Trigger, storage: Storage, store: CompletedCheckpointStore, commit: Request[bool]
) -> BatchCommittedError | None:
    """Error of a run whose batch an earlier run has committed; None otherwise. Its checkpoint would subsume newer ones.

    Args:
        trigger: trigger of the batch.
        storage: storage of the checkpoint location.
        store: its completed checkpoints.
        commit: `is_committed`.

    Raises:
        StorageError: the commit log cannot be read.
    """
    # Checkpoints count too: a run with many claims has dropped the claims of all others.
    records: list[Record] = [*store.claims(), *store.all()]
    others = [record for record in records if record.owner.run_id != trigger.job]
    if not others or trigger.is_standalone or not commit.result():
        return None
    newest = max(others, key=lambda record: record.id)
    return BatchCommittedError(storage.location, trigger.batch_id, str(newest.owner))


def fence_earlier(
    trigger: Trigger, storage: Storage, store: CompletedCheckpointStore, config: CheckpointConfig
) -> None:
    """Claim the location, which fences the earlier driver. Claims once per run, although Spark repeats its tasks.

    Raises:
        ParallelismChangedError: this query could not continue from the newest checkpoint, so it fences no other driver.
        DamagedCheckpointError, StorageError, UnknownOutcomeError: see these classes.
    """
    if any(claim.owner.run_id == trigger.job for claim in store.claims()):
        return
    if (newest := store.latest()) is not None:
        check_parallelism(trigger, read_checkpoint(storage, newest), config)
    store.claim()


def await_commit(
    trigger: Trigger,
    storage: Storage,
    store: CompletedCheckpointStore,
    earlier: Sequence[ClaimRecord],
    environment: Environment,
) -> bool:
    """Wait for the commit of the batch, if an earlier run has completed its checkpoint just before it was fenced. It
    may be about to commit that batch, but completes no other. A run that has ended commits nothing any more.

    Args:
        trigger: trigger of the batch.
        storage: storage of the checkpoint location.
        store: its completed checkpoints, claimed.
        earlier: claims before this run's.
        environment: clock, longest wait, and ended runs.

    Returns:
        True if the earlier run has had its time: an earlier look for the commit does not count any more.

    Raises:
        StorageError: the commit log cannot be read.
    """
    completed = store.latest_of_version(trigger.version)
    if completed is None or completed.owner.run_id == trigger.job or trigger.is_standalone:
        return False
    if last_driver_of(earlier).liveness is Liveness.NONE:
        return False
    for _ in range(int(environment.commit_seconds / _POLL_SECONDS)):
        has_ended = environment.claims.has_ended(completed.owner.run_id)
        if has_ended or storage.exists(_commit(trigger)):
            return True
        environment.clock.sleep(_POLL_SECONDS)
    return True


def _commit(trigger: Trigger) -> str:
    return f"commits/{trigger.batch_id}"
