"""Cache of completed checkpoints: states of the newest, state ids of older ones."""

from __future__ import annotations

from collections import OrderedDict

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.checkpoint.load import CheckpointState, load_checkpoint
from spark_ckpt.checkpoint.policy import chain_bound
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.format.keys import StoreKey, SubtaskKey

_STATES_IN_MEMORY = 3


class CheckpointCache:
    """States of the newest checkpoints, and state ids back to the oldest version that a base may have.

    Args:
        job: open job.
    """

    def __init__(self, job: OpenJob) -> None:
        self._job = job
        # A base may be as old as a chain is long, and must have the state id of its version.
        self._kept_ids = chain_bound(job.config) + _STATES_IN_MEMORY
        self._ids: OrderedDict[int, dict[StoreKey, list[str]]] = OrderedDict()
        self._own: dict[int, int] = {}
        self._states: OrderedDict[int, CheckpointState] = OrderedDict()

    def remember(self, state: CheckpointState, own: bool) -> None:
        """Add a checkpoint; `own` if this run has completed it."""
        if state.record is None:
            return
        self._states[state.record.id] = state
        self._states.move_to_end(state.record.id)
        while len(self._states) > _STATES_IN_MEMORY:
            self._states.popitem(last=False)
        self._ids[state.version] = state.state_ids()
        self._ids.move_to_end(state.version)
        if own:
            self._own[state.version] = state.record.id
        while len(self._ids) > self._kept_ids:
            forgotten, _ = self._ids.popitem(last=False)
            self._own.pop(forgotten, None)

    def forget(self, checkpoint_id: int) -> None:
        """Remove a dropped checkpoint."""
        self._states.pop(checkpoint_id, None)

    def disown(self, version: int) -> None:
        """Forget that this run has completed a version, which is about to be completed again."""
        self._own.pop(version, None)

    def own_checkpoint(self, version: int) -> int | None:
        """Id of the checkpoint that this run has completed for a version; None without one."""
        return self._own.get(version)

    def newest_own_version(self) -> int | None:
        """Newest version that this run has completed; None before the first."""
        return max(self._own, default=None)

    def ids_of(self, version: int) -> dict[StoreKey, list[str]] | None:
        """State ids of a completed version, by store and partition; None if unknown."""
        return self._ids.get(version)

    def id_of(self, version: int, key: SubtaskKey) -> str | None:
        """State id that counts for a subtask; None if unknown."""
        ids = self._ids.get(version, {}).get(key.of_operator)
        return ids[key.partition] if ids is not None and 0 <= key.partition < len(ids) else None

    def state_of(self, version: int) -> CheckpointState:
        """Newest checkpoint of a version.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            DamagedCheckpointError, StorageError: see `load_checkpoint`.
        """
        record = self._job.store.latest_of_version(version)
        if record is None:
            retained = {known.id: known.version for known in self._job.store.all()}
            raise VersionNotFoundError(self._job.storage.location, version, retained)
        state = self._states.get(record.id)
        if state is None:
            state = load_checkpoint(self._job.storage, record, self._job.store.all())
            self.remember(state, own=False)
        return state
