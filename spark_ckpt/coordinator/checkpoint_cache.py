"""Cache of completed checkpoints: states of the newest, state ids that count."""

from __future__ import annotations

from collections import OrderedDict

from spark_ckpt.checkpoint.load import CheckpointState, load_checkpoint, version_not_found
from spark_ckpt.compaction.state_ids import StateIds
from spark_ckpt.coordinator.open_job import OpenJob
from spark_ckpt.format.keys import SubtaskKey

_STATES_IN_MEMORY = 3


class CheckpointCache:
    """States of the newest checkpoints, and the state ids that count.

    Args:
        job: open job.

    Attributes:
        state_ids: state ids that count.
    """

    def __init__(self, job: OpenJob) -> None:
        self._job = job
        self.state_ids = StateIds()
        self._own: dict[int, int] = {}
        self._states: OrderedDict[int, CheckpointState] = OrderedDict()

    def remember(self, state: CheckpointState, own: bool) -> None:
        """Add the checkpoint that the next batch starts from; `own` if this run has completed it."""
        if state.record is None:
            return
        self._keep(state)
        if own:
            self._own[state.version] = state.record.id
        for forgotten in self.state_ids.add(state.version, state.state_ids()):
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

    def id_of(self, version: int, key: SubtaskKey) -> str | None:
        """State id that counts for a subtask; None if unknown."""
        return self.state_ids.id_of(version, key)

    def state_of(self, version: int) -> CheckpointState:
        """Newest checkpoint of a version.

        Raises:
            VersionNotFoundError: no retained checkpoint has the version.
            DamagedCheckpointError, StorageError: see `load_checkpoint`.
        """
        record = self._job.store.latest_of_version(version)
        if record is None:
            raise version_not_found(self._job.storage, version, self._job.store.all())
        state = self._states.get(record.id)
        if state is None:
            state = load_checkpoint(self._job.storage, record, self._job.store.all())
            self._keep(state)
        return state

    def _keep(self, state: CheckpointState) -> None:
        assert state.record is not None
        self._states[state.record.id] = state
        self._states.move_to_end(state.record.id)
        while len(self._states) > _STATES_IN_MEMORY:
            self._states.popitem(last=False)
