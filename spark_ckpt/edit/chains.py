"""Chains with one more delta, or with a new base, outside executors."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.format.key_groups import key_group_of, overlapping_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_writer import NewSection, encode_base, encode_delta, list_value
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import split_ranges
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.merge import Merged, merge
from spark_ckpt.state.read import read_view
from spark_ckpt.state.unsafe_row import binary_array
from spark_ckpt.state.views import View, view_of

FamilyChanges: TypeAlias = dict[bytes, bytes | None]
"""New values by key; None for a removed key."""

Changes: TypeAlias = dict[int, dict[str, FamilyChanges]]
"""Changes of a subtask by key group and by the name of the column family in segments."""


class ChangedChains:
    """Chains of the subtasks that a change touches.

    Args:
        catalog: state before the change.
        version: version of the state after it.
    """

    def __init__(self, catalog: StateCatalog, version: int) -> None:
        self._catalog = catalog
        self._version = version
        self._chains: dict[SubtaskKey, Chain] = {}

    def __len__(self) -> int:
        """Number of touched subtasks."""
        return len(self._chains)

    def add_delta(self, store: Store, partition: int, changes: Changes, added: int, lists: Set[str]) -> None:
        """Append a delta to a chain.

        Args:
            store: the store.
            partition: the subtask.
            changes: its changes; no part is empty.
            added: number of new keys, less that of removed ones.
            lists: families whose keys have lists of values.
        """
        chain = store.chains[partition]
        groups = (
            (group, [NewSection(name, [*of], [*of.values()], name in lists) for name, of in families.items()])
            for group, families in sorted(changes.items())
        )
        delta = encode_delta(self._version, groups).ref(self._version, self._version)
        self._chains[_subtask(store, partition)] = Chain(_new_id(), chain.rows + added, (*chain.entries, delta))

    def replace_by_base(self, store: Store, partition: int) -> None:
        """Replace all segments of a chain, with its delta if it has a new one, by one base without removed keys."""
        key = _subtask(store, partition)
        chain = self._chains.get(key, store.chains[partition])
        segment = encode_base(self._version, _sections(self._catalog, store, partition, chain))
        entries = (segment.ref(0, self._version),) if segment.rows else ()
        self._chains[key] = Chain(_new_id(), segment.rows, entries)

    def has(self, store: Store, partition: int) -> bool:
        """True if a subtask is touched."""
        return _subtask(store, partition) in self._chains

    def table(self) -> ChainTable:
        """Chains of all subtasks. Each has a state id of its own, as after any batch."""
        return {
            store.state.key: [
                self._chains.get(_subtask(store, i)) or Chain(_new_id(), chain.rows, chain.entries)
                for i, chain in enumerate(store.chains)
            ]
            for store in self._catalog.stores
        }


def places_of(
    catalog: StateCatalog, store: Store, hashes: NDArray[np.int32]
) -> Mapping[int, Mapping[int, NDArray[np.int64]]]:
    """Indices of rows by partition and key group, both ascending.

    Args:
        catalog: state of the checkpoint.
        store: their store.
        hashes: Spark's hash of the grouping key of each row.
    """
    codes = hashes.astype(np.int64)
    partitions, key_groups = codes % store.state.parallelism, key_group_of(codes, catalog.batch.key_group_factors)
    order = np.lexsort((key_groups, partitions))
    result: dict[int, dict[int, NDArray[np.int64]]] = defaultdict(dict)
    if order.size:
        places = np.stack((partitions[order], key_groups[order]))
        edges = np.flatnonzero(np.diff(places).any(axis=0)) + 1
        for rows in np.split(order, edges):
            result[int(partitions[rows[0]])][int(key_groups[rows[0]])] = rows
    return result


def key_groups_to_read(
    catalog: StateCatalog, store: Store, hashes: NDArray[np.int32] | None
) -> Mapping[int, Set[int] | None]:
    """Key groups that may have rows of some grouping keys, by partition; None for all.

    Args:
        catalog: state of the checkpoint.
        store: their store.
        hashes: Spark's hash of each grouping key; None if some of their columns are unknown.
    """
    if hashes is None:
        return dict.fromkeys(range(store.state.parallelism))
    return {partition: set(of) for partition, of in places_of(catalog, store, hashes).items()}


def merged_in(
    catalog: StateCatalog, view: View, partition: int, key_groups: Set[int] | None = None
) -> Iterator[Merged]:
    """Live rows of a view in a subtask.

    Args:
        catalog: state of the checkpoint.
        view: the view.
        partition: the subtask.
        key_groups: the only key groups to read; None for all.
    """
    chain = view.store.chains[partition]
    if not chain.entries:
        return
    for part in ranges_in(catalog, view.store, partition, key_groups):
        yield merge(read_view(catalog.storage, view, chain, part))


def ranges_in(
    catalog: StateCatalog, store: Store, partition: int, key_groups: Set[int] | None
) -> Iterator[KeyGroupRange]:
    """Ranges of key groups of a subtask, each to be read at once.

    Args:
        catalog: state of the checkpoint.
        store: the store.
        partition: the subtask.
        key_groups: the only key groups to read; None for all.
    """
    ranges = overlapping_ranges(partition, store.state.parallelism, catalog.batch.key_group_factors)
    if key_groups is not None:
        ranges = _ranges_of(sorted(key_groups))
    return split_ranges(store.chains[partition], ranges)


def _ranges_of(key_groups: list[int]) -> list[KeyGroupRange]:
    groups = np.array(key_groups, np.int64)
    runs = np.split(groups, np.flatnonzero(np.diff(groups) != 1) + 1)
    return [KeyGroupRange(int(run[0]), int(run[-1])) for run in runs if run.size]


def _sections(
    catalog: StateCatalog, store: Store, partition: int, chain: Chain
) -> Iterator[tuple[int, list[NewSection]]]:
    """Live rows of a chain by key group."""
    views = [view_of(store, family) for family in store.families]
    for group in sorted({int(group) for entry in chain.entries for group in entry.key_groups}):
        sections = []
        for view in views:
            merged = merge(read_view(catalog.storage, view, chain, KeyGroupRange(group, group)))
            if len(merged.keys):
                sections.append(_section(view, merged))
        if sections:
            yield group, sections


def _section(view: View, merged: Merged) -> NewSection:
    keys, values = binary_array(merged.keys).to_pylist(), binary_array(merged.values).to_pylist()
    if merged.order is None or merged.counts is None:
        return NewSection(view.segment_family, keys, values)
    ordered = [values[i] for i in merged.order.tolist()]
    ends = np.cumsum(merged.counts)
    spans = zip((ends - merged.counts).tolist(), ends.tolist(), strict=True)
    return NewSection(view.segment_family, keys, [list_value(ordered[start:end]) for start, end in spans], lists=True)


def _subtask(store: Store, partition: int) -> SubtaskKey:
    return SubtaskKey(store.state.operator_id, store.state.store, partition)


def _new_id() -> str:
    return str(uuid.uuid4())
