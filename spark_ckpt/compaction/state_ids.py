"""State ids that count: those of recent versions, and those of bases in progress."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.messages import Ack

RECENT_VERSIONS = 4
"""Completed versions whose state ids are known. A base has the version before that of the ack that first names it, or
the one before that if the executor had not heard of the last checkpoint."""

MAX_HELD = 2
"""Most bases in progress per subtask whose state ids are known: executors may take turns with a subtask."""


class StateIds:
    """State ids that count, by version and subtask.

    A base has the state of its version, and may take any number of batches. So the id of that version is kept for its
    subtask from the first ack that names the base, until the chain has a base as new. All other ids are forgotten
    after a few versions.
    """

    def __init__(self) -> None:
        self._recent: OrderedDict[int, Mapping[StoreKey, Sequence[str]]] = OrderedDict()
        self._held: dict[SubtaskKey, dict[int, str]] = {}

    def add(self, version: int, ids: Mapping[StoreKey, Sequence[str]]) -> list[int]:
        """Add a completed version. A version that is completed again, with other states, replaces the earlier one.

        Args:
            version: completed version.
            ids: its state ids, by store and partition.

        Returns:
            Versions whose ids are now forgotten.
        """
        is_again = version <= max(self._recent, default=0) and self._recent.get(version) != ids
        self._recent[version] = ids
        self._recent.move_to_end(version)
        if is_again:
            self._drop_others(version)
        forgotten = []
        while len(self._recent) > RECENT_VERSIONS:
            forgotten.append(self._recent.popitem(last=False)[0])
        return forgotten

    def hold(self, ack: Ack, base_version: int) -> None:
        """Keep the state id of the base in progress that an ack names.

        Args:
            ack: ack of a pending checkpoint.
            base_version: version of the newest base of its chain; bases up to this version are of no use.
        """
        subtask = ack.subtask
        # Until its writing begins, a base has no version.
        version = next((step.version for step in ack.in_progress if step.is_base and step.version), None)
        held = self._held.get(subtask)
        if version is None and held is None:
            return
        kept = {begun: state_id for begun, state_id in (held or {}).items() if begun > base_version}
        if version is not None and version > base_version:
            state_id = kept.pop(version, None) or self._recent_id(version, subtask)
            if state_id is not None:
                kept[version] = state_id  # at the end: named last
        while len(kept) > MAX_HELD:
            del kept[next(iter(kept))]
        if kept:
            self._held[subtask] = kept
        else:
            self._held.pop(subtask, None)

    def id_of(self, version: int, subtask: SubtaskKey) -> str | None:
        """State id that counts for a subtask; None if it is not known, or not known any more."""
        held = self._held.get(subtask)
        return self._recent_id(version, subtask) or (held.get(version) if held is not None else None)

    @property
    def held(self) -> int:
        """Number of state ids that are kept for bases in progress."""
        return sum(map(len, self._held.values()))

    def _recent_id(self, version: int, subtask: SubtaskKey) -> str | None:
        ids = self._recent.get(version, {}).get(subtask.of_operator)
        return ids[subtask.partition] if ids is not None and 0 <= subtask.partition < len(ids) else None

    def _drop_others(self, version: int) -> None:
        """Forget ids of bases from this version on, unless it has the same state."""
        for subtask, held in list(self._held.items()):
            if held.get(version) != self._recent_id(version, subtask):
                self._held[subtask] = {earlier: state_id for earlier, state_id in held.items() if earlier < version}
