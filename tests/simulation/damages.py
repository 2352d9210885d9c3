"""Damage to checkpoints in a simulated world, until a backup is restored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_ckpt.completed import CheckpointRecord
from tests.simulation.disk import Disk

if TYPE_CHECKING:
    from tests.simulation.checks import Checks
    from tests.simulation.world import World

DAMAGE = "damage a checkpoint"


class Damages:
    """Files of checkpoints that have lost their content. One checkpoint at least stays whole.

    Args:
        world: the world.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._good: dict[str, bytes] = {}
        self.is_any = False
        """Whether a file has ever been damaged."""

    def read(self, name: str) -> bytes | None:
        """Content of a file before its damage."""
        return self._good.get(name) or self._disk.read(name)

    def is_whole(self, record: CheckpointRecord) -> bool:
        """Whether a checkpoint has no damaged file."""
        return self._good.keys().isdisjoint(self._checks.files_of(record.id))

    def strike(self) -> None:
        """Damages the newest checkpoint: its `_metadata`, which a start finds, or state that only executors read."""
        whole = [record for record in self._checks.retained() if self.is_whole(record)]
        if len(whole) < 2:
            return
        newest, others = whole[-1], [self._checks.files_of(record.id) for record in whole[:-1]]
        own = sorted(self._checks.files_of(newest.id).difference(*others))
        metadata = f"ckpt/{newest.metadata.path}"
        state = [name for name in own if name != metadata]
        name = self._world.rng.choice(state) if state and self._world.rng.random() < 0.5 else metadata
        data = self._disk.read(name)
        assert data is not None
        self._good[name], self.is_any = data, True
        self._put(name, data[:-1] + bytes((data[-1] ^ 1,)))
        self._world.count("metadata damaged" if name == metadata else "state damaged")
        self._world.trace(f"{name} of checkpoint {newest.id} is damaged")

    def repair(self) -> None:
        """Restores the files that are still there from a backup."""
        for name, data in self._good.items():
            if self._disk.read(name) is not None:
                self._put(name, data)
        self._good.clear()

    @property
    def _disk(self) -> Disk:
        return self._world.disk

    @property
    def _checks(self) -> Checks:
        return self._world.checks

    def _put(self, name: str, data: bytes) -> None:
        """Changes a file behind the back of all who watch the disk."""
        directory, _, base = name.rpartition("/")
        self._disk.directories[directory][base] = data
