"""Chains: the state of a subtask as a base and its deltas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from spark_ckpt.format.keys import StoreKey, SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef


class Run(NamedTuple):
    """Neighbouring segments of a chain, by index: from `first` until `end`, exclusive."""

    first: int
    end: int


class Chain:
    """State of one store of one subtask at one version. Immutable by convention.

    Args:
        state_id: id of the state, a UUID.
        rows: rows of the store; between a rescale and the next batch, an estimate of its share.
        entries: bases (several after a rescale), then deltas, oldest first. Empty for a store without rows.

    Attributes:
        size: bytes of all segments.
        base_version: version of the newest base; 0 if the chain begins with its first delta.
        base_bytes: bytes of the bases; without a base, bytes of the first delta, which takes its place.
        deltas: number of deltas since the base, excluding one that takes its place.
        inline_bytes: bytes of inline segments.
    """

    __slots__ = ("base_bytes", "base_version", "deltas", "entries", "inline_bytes", "rows", "size", "state_id")

    def __init__(self, state_id: str, rows: int, entries: tuple[SegmentRef, ...] = ()) -> None:
        self.state_id = state_id
        self.rows = rows
        self.entries = entries
        # Computed once: needed for every ack, and several times per checkpoint.
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

    @property
    def bases(self) -> int:
        """Number of segments that a restore reads first: the bases or, without one, the first delta."""
        return len(self.entries) - self.deltas

    def run_of(self, first_version: int, version: int) -> Run | None:
        """Deltas that have the changes of these versions and of no others; None if there are none.

        Args:
            first_version: first of the versions.
            version: last of them.
        """
        of_run = [
            i
            for i, entry in enumerate(self.entries[self.bases :], self.bases)
            if first_version <= entry.version and entry.first_version <= version
        ]
        if not of_run:
            return None
        run = Run(of_run[0], of_run[-1] + 1)
        entries = self.entries[run.first : run.end]
        return run if entries[0].first_version == first_version and entries[-1].version == version else None

    def next(
        self,
        state_id: str,
        rows: int,
        delta: SegmentRef | None,
        base: SegmentRef | None = None,
        base_version: int = 0,
        merged: SegmentRef | None = None,
    ) -> Chain:
        """Chain of the next version.

        Args:
            state_id: id of the new state.
            rows: rows of the new state.
            delta: new last segment; None without changes.
            base: replacement of all segments up to `base_version`; None if that version had no rows.
            base_version: version of the base; 0 without a base.
            merged: replacement of the deltas with the changes of the same versions.
        """
        if base_version == 0 and base is None and merged is None and self.entries:
            return self._appended(state_id, rows, delta)
        entries = self.entries
        if merged is not None and (run := self.run_of(merged.first_version, merged.version)) is not None:
            entries = (*entries[: run.first], merged, *entries[run.end :])
        if base_version:
            entries = tuple(entry for entry in entries if entry.version > base_version)
        if base is not None:
            entries = (base, *entries)
        if delta is not None and delta.version > base_version:
            entries = (*entries, delta)
        return Chain(state_id, rows, entries)

    def _appended(self, state_id: str, rows: int, delta: SegmentRef | None) -> Chain:
        """Chain with one more delta, as nearly every batch makes it: the sums of this chain are used again."""
        chain = Chain(state_id, rows)
        chain.size, chain.base_version, chain.base_bytes = self.size, self.base_version, self.base_bytes
        chain.deltas, chain.inline_bytes, chain.entries = self.deltas, self.inline_bytes, self.entries
        if delta is not None:
            chain.entries = (*self.entries, delta)
            chain.size += delta.size
            chain.deltas += 1
            if delta.path is None:
                chain.inline_bytes += delta.size
        return chain


ChainTable: TypeAlias = dict[StoreKey, list[Chain]]
"""Chains of all subtasks of each store, by partition. Immutable once the checkpoint is complete."""


def all_entries(table: ChainTable) -> Iterator[SegmentRef]:
    """All segments of all chains."""
    for chains in table.values():
        for chain in chains:
            yield from chain.entries


def files_of(table: ChainTable) -> set[str]:
    """Files of the chains, relative to the `ckpt` directory."""
    return {entry.path for entry in all_entries(table) if entry.path is not None}


def chain_of(table: ChainTable, key: SubtaskKey) -> Chain | None:
    """Chain of a subtask; None if the table lacks it."""
    chains = table.get(key.of_operator)
    return chains[key.partition] if chains is not None and 0 <= key.partition < len(chains) else None
