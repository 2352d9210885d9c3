"""Differences between the positions of sources in two checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spark_ckpt.checkpoint.sources import SourceState
from spark_ckpt.spark_files.source_positions import SourcePosition

_Key: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class PositionChange:
    """A position of a source that differs between two checkpoints.

    Args:
        source: name of the source.
        before: position in the first checkpoint; None for a partition that only the second one has.
        after: position in the second checkpoint; None for a partition that only the first one has.
    """

    source: str
    before: SourcePosition | None
    after: SourcePosition | None

    @property
    def change(self) -> str:
        """`insert`, `update` or `delete`, as for rows of state."""
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"

    @property
    def position(self) -> SourcePosition:
        """The position that exists: after if possible."""
        position = self.before if self.after is None else self.after
        assert position is not None
        return position


def position_changes(before: Sequence[SourceState], after: Sequence[SourceState]) -> Iterator[PositionChange]:
    """Positions that differ, in the order of the second checkpoint's sources, then of sources that only the first has.

    Args:
        before: sources of the first checkpoint.
        after: sources of the second one. Sources of the same name are compared, partition by partition.
    """
    old, new = (_by_name(sources) for sources in (before, after))
    for name in {**new, **old}:
        old_positions, new_positions = old.get(name, {}), new.get(name, {})
        for key in sorted({**old_positions, **new_positions}):
            change = PositionChange(name, old_positions.get(key), new_positions.get(key))
            if change.before != change.after:
                yield change


def _by_name(sources: Sequence[SourceState]) -> dict[str, dict[_Key, SourcePosition]]:
    return {source.name: {position.key: position for position in source.positions} for source in sources}
