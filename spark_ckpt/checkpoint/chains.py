"""The state of a subtask as a base and the deltas since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.format.keys import PartitionFilter, StoreKey, SubtaskKey


@dataclass(slots=True, eq=False)
class ChainEntry:
    """One segment of a chain. Not changed once its bytes are somewhere: `place_in` moves those of a new one to a file.

    Args:
        is_base: base or delta.
        version: version of the state that it is or leads to.
        key_groups: uint32, ascending.
        offsets: int64, start of each key group's block in the file or in `data`.
        size: bytes of the segment; its share, by key groups, of one that a rescale has divided.
        path: file relative to the `ckpt` directory; None if `data` holds the bytes.
        file_size: bytes of that file, which may hold other segments too.
        data: the bytes of an inline segment.
        filters: what a row must pass to count, all of them.

    Attributes:
        encoded: bytes of the handle, once `encode` has made them. No argument, so `replace` does not copy them to a
            segment with another handle.
    """

    is_base: bool
    version: int
    key_groups: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    size: int
    path: str | None
    file_size: int
    data: bytes = b""
    filters: tuple[PartitionFilter, ...] = ()
    encoded: bytes | None = field(default=None, init=False, repr=False)

    def place_in(self, path: str, file_size: int, start: int) -> None:
        """The bytes of this new segment are in a file from now on.

        Args:
            path: relative to the `ckpt` directory.
            file_size: bytes of the file.
            start: where in the file the segment begins.
        """
        self.path, self.file_size, self.offsets = path, file_size, self.offsets + start
        self.data = b""
        self.encoded = None

    def shared_as(self, is_base: bool, version: int, size: int, filters: tuple[PartitionFilter, ...]) -> ChainEntry:
        """These blocks as a segment of another chain, whose rows pass these filters."""
        # Not `replace`, which takes several times as long: a rescale can make hundreds of thousands of these.
        return ChainEntry(
            is_base, version, self.key_groups, self.offsets, size, self.path, self.file_size, self.data, filters
        )


class Chain:
    """State of one store of one subtask at one version. Not changed once made.

    Args:
        state_id: id of the state, 32 hexadecimal digits.
        rows: rows of the store; after a rescale, until the next batch, its share of the rows there are.
        entries: bases first (after a rescale there can be several), then deltas, oldest first. Empty: no rows.

    Attributes:
        size: bytes of all segments.
        base_version: version of the newest base; 0 if the chain begins with its first delta.
        base_bytes: bytes of the bases; without one, of the first delta, which stands for it.
        deltas: deltas since, not counting one that stands for a base.
        inline_bytes: bytes of the segments that `_metadata` itself holds.
    """

    __slots__ = ("base_bytes", "base_version", "deltas", "entries", "inline_bytes", "rows", "size", "state_id")

    def __init__(self, state_id: str, rows: int, entries: tuple[ChainEntry, ...] = ()) -> None:
        self.state_id = state_id
        self.rows = rows
        self.entries = entries
        # Asked for with every ack and several times while a checkpoint is composed, so counted once.
        size = base_version = base_bytes = deltas = inline_bytes = 0
        for entry in entries:
            size += entry.size
            if entry.is_base:
                base_version = max(base_version, entry.version)
                base_bytes += entry.size
            else:
                deltas += 1
            if entry.path is None:
                inline_bytes += entry.size
        if entries and not entries[0].is_base:
            base_bytes = entries[0].size
            deltas -= 1
        self.size, self.base_version, self.base_bytes = size, base_version, base_bytes
        self.deltas, self.inline_bytes = deltas, inline_bytes

    def next(
        self, state_id: str, rows: int, delta: ChainEntry | None, base: ChainEntry | None = None, base_version: int = 0
    ) -> Chain:
        """The chain one version later.

        Args:
            state_id: id of the new state.
            rows: its rows.
            delta: comes last; None if nothing changed.
            base: takes the place of all segments up to `base_version`; None if there was no row then.
            base_version: version of the base; 0 if there is none.
        """
        entries = self.entries
        if base_version:
            entries = tuple(entry for entry in entries if entry.version > base_version)
        if base is not None:
            entries = (base, *entries)
        if delta is not None and delta.version > base_version:
            entries = (*entries, delta)
        return Chain(state_id, rows, entries)


ChainTable: TypeAlias = dict[StoreKey, list[Chain]]
"""The chains of all subtasks of each store, by partition. A table is not changed once its checkpoint is complete."""


def all_entries(table: ChainTable) -> Iterator[ChainEntry]:
    """Every segment of every chain."""
    for chains in table.values():
        for chain in chains:
            yield from chain.entries


def files_of(table: ChainTable) -> set[str]:
    """The files that the chains refer to, relative to the `ckpt` directory."""
    return {entry.path for entry in all_entries(table) if entry.path is not None}


def chain_of(table: ChainTable, key: SubtaskKey) -> Chain | None:
    """The chain of a subtask, or None if the table does not have it."""
    chains = table.get(key.of_operator)
    return chains[key.partition] if chains is not None and 0 <= key.partition < len(chains) else None
