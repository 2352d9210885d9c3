"""Reassignment of a store's segments to a new number of partitions. Nothing is read or written.

A segment is divided among the new subtasks by its key groups. If partitions own whole key groups, that is all.
Otherwise several subtasks get the same blocks, each with a filter for its own rows. A later rescale joins such a
segment again and drops the filter if all its owners still refer to it. If an owner has written a base of its own since,
the filter stays: the old segment is outdated for the rows of that owner.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import gcd, prod

import numpy as np

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.format.key_groups import hashes_of
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_flags import joined_flags
from spark_ckpt.format.segment_ref import Blocks, SegmentRef

_IDS = uuid.UUID("5b0c2f0e-7f1b-4c57-9a56-0d4f3d9a6d0e")
"""Name space of the ids of assigned states."""

_WIDEST_GAP = 16
"""Widest gap within a handle. A handle has 8 bytes for each key group of its range: beyond this, two are smaller."""


def reassign(
    chains: Sequence[Chain], parallelism: int, factors: Sequence[int], *, repeatable: bool = False
) -> list[Chain]:
    """The chains of the new subtasks.

    A key is in one subtask at any time, so segments of different subtasks never conflict: bases come in any order, and
    deltas in the order of their versions.

    Args:
        chains: chains of the old subtasks, by partition, without inline segments.
        parallelism: number of new subtasks, at most the number of key groups.
        factors: the numbering of the key groups.
        repeatable: True for ids that are the same again for the same chains and number.

    Returns:
        The chains by partition, with new ids. Rows and bytes are shares with the same totals as before.
    """
    parts: list[list[SegmentRef]] = [[] for _ in range(parallelism)]
    for entry in sorted(pooled(chains, factors), key=lambda entry: (not entry.is_base, entry.version)):
        for partition, part in _divided(entry, parallelism, factors):
            parts[partition].append(part)
    rows = _shared_rows([chain.rows for chain in chains], parallelism)
    ids = uuid.uuid5(_IDS, " ".join(chain.state_id for chain in chains)) if repeatable else uuid.uuid4()
    return [
        Chain(str(uuid.uuid5(ids, f"{partition}/{parallelism}")), rows[partition], tuple(entries))
        for partition, entries in enumerate(parts)
    ]


# ---- joining ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    """Parts of one segment, from several subtasks."""

    entries: list[SegmentRef] = field(default_factory=list)
    owners: set[int] = field(default_factory=set)


def pooled(chains: Sequence[Chain], factors: Sequence[int]) -> Iterator[SegmentRef]:
    """The segments of all subtasks, joined by file. A filter that all owners satisfy together is dropped.

    Args:
        chains: chains of the old subtasks, by partition, without inline segments.
        factors: the numbering of the key groups.
    """
    before = len(chains)
    parts: dict[tuple[object, ...], _Parts] = {}
    for chain in chains:
        for entry in chain.entries:
            filters, owners = _split_off(entry.filters, before)
            key = (entry.path, entry.first_version, entry.version, filters, bool(owners))
            part = parts.setdefault(key, _Parts())
            part.entries.append(replace(entry, filters=filters))
            part.owners.update(owners)
    for part in parts.values():
        for layer in _layers(part.entries):
            yield _owned(layer, before, part.owners, factors)


def _split_off(
    filters: tuple[PartitionFilter, ...], parallelism: int
) -> tuple[tuple[PartitionFilter, ...], tuple[int, ...]]:
    """The filters without the one of the last rescale, and the partitions of that one, if any."""
    if filters and filters[-1].parallelism == parallelism:
        return filters[:-1], filters[-1].partitions
    return filters, ()


def _layers(parts: Sequence[SegmentRef]) -> Iterator[SegmentRef]:
    """One segment with all blocks of the parts; several if subtasks have blocks of the same key group, since a state
    handle has one offset per key group."""
    groups = np.concatenate([part.key_groups for part in parts])
    offsets = np.concatenate([part.offsets for part in parts])
    blocks = np.unique(np.stack([groups.astype(np.int64), offsets]), axis=1)
    groups, offsets = blocks[0], blocks[1]
    layer_of = np.arange(groups.size) - np.searchsorted(groups, groups)
    size = sum(part.size for part in parts)
    weights = [int(np.count_nonzero(layer_of == layer)) for layer in range(int(layer_of.max()) + 1)]
    for layer, share in enumerate(_shares(size, weights)):
        there = layer_of == layer
        yield replace(
            parts[0],
            blocks=Blocks(groups[there].astype(np.uint32), offsets[there]),
            size=share,
            flags=joined_flags(part.flags for part in parts),
        )


def _owned(entry: SegmentRef, parallelism: int, owners: set[int], factors: Sequence[int]) -> SegmentRef:
    """A segment with the filter for its owners, if they are not all possible owners of its key groups."""
    if not owners:
        return entry
    common = gcd(parallelism, prod(factors))
    residues = set((hashes_of(entry.key_groups, factors) % common).tolist())
    if sum(owner % common in residues for owner in owners) == len(residues) * (parallelism // common):
        return entry
    return replace(entry, filters=(*entry.filters, PartitionFilter(parallelism, tuple(sorted(owners)))))


def ranges_of(entry: SegmentRef, parallelism: int, factors: Sequence[int]) -> int:
    """Number of parts into which a joined segment is divided, without wide gaps, if a partition owns whole key groups.

    Args:
        entry: segment of `pooled`.
        parallelism: number of partitions, a divisor of the number of key groups.
        factors: the numbering of the key groups.
    """
    residues = hashes_of(entry.key_groups, factors) % parallelism
    order = np.argsort(residues, kind="stable")  # key groups ascend within each
    residues, key_groups = residues[order], entry.key_groups[order].astype(np.int64)
    return 1 + int(np.count_nonzero((np.diff(residues) != 0) | (np.diff(key_groups) > _WIDEST_GAP)))


# ---- dividing --------------------------------------------------------------------------------------------------------


def _divided(entry: SegmentRef, parallelism: int, factors: Sequence[int]) -> Iterator[tuple[int, SegmentRef]]:
    """New subtasks and their parts of a segment. A part has no wide gaps between its key groups."""
    max_parallelism = prod(factors)
    common = gcd(parallelism, max_parallelism)
    residues = hashes_of(entry.key_groups, factors) % common
    found: list[tuple[int, SegmentRef, tuple[PartitionFilter, ...]]] = []
    for residue in np.unique(residues).tolist():
        blocks = np.flatnonzero(residues == residue)
        gaps = np.diff(entry.key_groups[blocks].astype(np.int64))
        runs = [
            replace(entry, blocks=Blocks(entry.key_groups[run], entry.offsets[run]))
            for run in np.split(blocks, np.flatnonzero(gaps > _WIDEST_GAP) + 1)
        ]
        for partition in range(residue, parallelism, common):
            filters = entry.filters if common == parallelism else _filtered(entry.filters, parallelism, partition)
            if filters is not None:
                found += [(partition, run, filters) for run in runs]
    shares = _shares(entry.size, [run.offsets.size for _, run, _ in found])
    for (partition, run, filters), size in zip(found, shares, strict=True):
        # Several partitions may share the arrays of a run.
        yield partition, run.shared_as(run.first_version, run.version, size, filters, run.flags)


def _filtered(
    filters: tuple[PartitionFilter, ...], parallelism: int, partition: int
) -> tuple[PartitionFilter, ...] | None:
    """The filters extended by one for the partition; None if no row can pass."""
    earlier, owners = _split_off(filters, parallelism)
    if owners and partition not in owners:
        return None
    return (*earlier, PartitionFilter(parallelism, (partition,)))


def _shared_rows(rows: Sequence[int], parallelism: int) -> list[int]:
    """Rows of the new subtasks for evenly spread hashes. An old and a new subtask share hashes if they agree modulo the
    greatest common divisor of both numbers of partitions, and each such pair shares equally many."""
    before = len(rows)
    common = gcd(before, parallelism)
    shared = [0] * parallelism
    for residue in range(common):
        new = range(residue, parallelism, common)
        for partition, share in zip(new, _shares(sum(rows[residue::common]), [1] * len(new)), strict=True):
            shared[partition] = share
    return shared


def _shares(total: int, weights: Iterable[int]) -> list[int]:
    """A total divided into whole shares by weight."""
    bounds = np.cumsum([0, *weights]).tolist()
    return [total * end // bounds[-1] - total * start // bounds[-1] for start, end in pairwise(bounds)]
