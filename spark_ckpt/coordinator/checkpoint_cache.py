"""Cache of completed checkpoints: states of the newest, ids of older ones."""

from __future__ import annotations

from collections import OrderedDict

from spark_ckpt.checkpoint.errors import VersionNotFoundError
from spark_ckpt.checkpoint.load import CheckpointState, load_checkpoint
from spark_ckpt.checkpoint.policy import chain_bound
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.format.keys import StoreKey, SubtaskKey

_STATES_IN_MEMORY = 3


class CheckpointCache:
    """States of the newest checkpoints, and state ids as far back as a base may reach.

    Args:
        job: the open job.
    """

    def __init__(self, job: OpenJob) -> None:
        self._job = job
        # A base may be as old as a chain is long, and has to be of the state that counts for its version.
        self._kept_ids = chain_bound(job.config) + _STATES_IN_MEMORY
        self._ids: OrderedDict[int, dict[StoreKey, list[str]]] = OrderedDict()
        self._own: dict[int, int] = {}
        self._states: OrderedDict[int, CheckpointState] = OrderedDict()

    def remember(self, state: CheckpointState, own: bool) -> None:
        """Keeps a checkpoint; `own` if this run has completed it."""
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
        """The checkpoint was dropped."""
        self._states.pop(checkpoint_id, None)

    def disown(self, version: int) -> None:
        """The version is to be completed anew."""
        self._own.pop(version, None)

    def own_checkpoint(self, version: int) -> int | None:
        """The checkpoint of a version that this run has completed, or None."""
        return self._own.get(version)

    def newest_own_version(self) -> int | None:
        """The newest version that this run has completed, or None."""
        return max(self._own, default=None)

    def ids_of(self, version: int) -> dict[StoreKey, list[str]] | None:
        """The ids of the states of a completed version, by store and partition; None if they are not known."""
        return self._ids.get(version)

    def id_of(self, version: int, key: SubtaskKey) -> str | None:
        """The id of the state that counts for a subtask; None if it is not known."""
        ids = self._ids.get(version, {}).get(key.of_operator)
        return ids[key.partition] if ids is not None and 0 <= key.partition < len(ids) else None

    def state_of(self, version: int) -> CheckpointState:
        """The newest checkpoint of a version.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            DamagedCheckpointError, StorageError: it cannot be read (see `load_checkpoint`).
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
