"""Blocks of key groups of a subtask's chain, read and joined without decoding rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.compose import handle_name
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.keys import PartitionFilter
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import HEADER_BYTES, RawSection, read_block
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.partition_hash import PartitionKey
from spark_ckpt.state.rows import Buffer, Piece, Rows
from spark_ckpt.storage import Storage

BATCH_BYTES = 16 << 20
"""Approximate bytes of blocks per read; at least one key group."""

_BODY_LENGTH = slice(24, 28)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of one column family in the segments of a chain, oldest first. A key may have several.

    Args:
        keys: the key of each entry.
        values: the value of each entry; empty for a removed key.
        removed: mask of removed keys.
        lists: True if values are lists.
        appends: mask of entries with rows to append to the existing list.
        distinct: True if keys are unique, because all entries are from one base.
    """

    keys: Rows
    values: Rows
    removed: NDArray[np.bool_]
    lists: bool
    appends: NDArray[np.bool_]
    distinct: bool

    def take(self, which: NDArray[np.int64]) -> Entries:
        """Some of the entries, by ascending index."""
        return replace(
            self,
            keys=self.keys.take(which),
            values=self.values.take(which),
            removed=self.removed[which],
            appends=self.appends[which],
        )


def split_ranges(chain: Chain, ranges: list[KeyGroupRange]) -> Iterator[KeyGroupRange]:
    """Ranges of key groups with about `BATCH_BYTES` of blocks each.

    Args:
        chain: chain of the subtask.
        ranges: its key groups.
    """
    last = max(key_groups.end for key_groups in ranges)
    weights = np.zeros(last + 1, np.int64)
    for entry in chain.entries:
        ends = np.append(entry.offsets[1:], entry.offsets[:1] + entry.size)
        known = entry.key_groups <= last
        weights[entry.key_groups[known]] += np.maximum(ends - entry.offsets, 0)[known]
    for key_groups in ranges:
        filled = np.cumsum(weights[key_groups.start : key_groups.end + 1])
        cuts = np.flatnonzero(np.diff(filled // BATCH_BYTES)) + 1
        starts = [key_groups.start, *(key_groups.start + cuts).tolist()]
        for start, after in zip(starts, [*starts[1:], key_groups.end + 1], strict=True):
            yield KeyGroupRange(start, after - 1)


def read_entries(
    storage: Storage, store: str, chain: Chain, key_groups: KeyGroupRange, family: str, partition_key: PartitionKey
) -> Entries:
    """Entries of a column family in a chain, for a range of key groups.

    Args:
        storage: storage of the checkpoint location.
        store: the store, for errors.
        chain: chain of the subtask.
        key_groups: the range.
        family: name of the column family in segments; "" for the default one.
        partition_key: partitioning fields of its keys, for segments shared with other subtasks.

    Raises:
        SegmentError: a block is damaged or unexpected.
        StorageError: a file cannot be read.
    """
    keys, values, sections, filters, kinds = [], [], [], [], []
    for entry in chain.entries:
        found = [
            (path, offset, key_group, section)
            for path, offset, key_group, raw in _read_blocks(storage, entry, key_groups)
            for section in raw
            if section.column_family == family
        ]
        kinds += [entry.is_base] * bool(found)
        for path, offset, key_group, section in found:
            keys.append(Piece(path, offset + section.keys_at, key_group, section.keys))
            values.append(Piece(path, offset + section.values_at, key_group, section.values))
            sections.append(section)
            filters.append(entry.filters)
    none = np.empty(0, np.int64)
    key_lengths = np.concatenate([none, *(section.key_lengths for section in sections)])
    value_lengths = np.concatenate([none, *(section.value_lengths for section in sections)])
    counts = np.array([section.key_lengths.size for section in sections], np.int64)
    appends = np.repeat(np.array([section.appends for section in sections], np.bool_), counts)
    removed = value_lengths < 0
    entries = Entries(
        _rows(Buffer.of(keys, store), key_lengths),
        _rows(Buffer.of(values, store), np.where(removed, 0, value_lengths)),
        removed,
        any(section.lists for section in sections),
        appends,
        kinds == [True],
    )
    return _filtered(entries, filters, counts, partition_key) if any(filters) else entries


def _filtered(
    entries: Entries,
    filters: Sequence[tuple[PartitionFilter, ...]],
    counts: NDArray[np.int64],
    partition_key: PartitionKey,
) -> Entries:
    """The entries that pass the filters of their section."""
    ends = np.cumsum(counts)
    indices = [
        start + np.flatnonzero(partition_key.passing(entries.keys.take(np.arange(start, end)), each))
        for each, start, end in zip(filters, (ends - counts).tolist(), ends.tolist(), strict=True)
    ]
    return entries.take(np.concatenate(indices))


def _read_blocks(
    storage: Storage, entry: SegmentRef, key_groups: KeyGroupRange
) -> Iterator[tuple[str, int, int, tuple[RawSection, ...]]]:
    """File, offset, key group and sections of each block of a segment in a range of key groups."""
    first, after = np.searchsorted(entry.key_groups, (key_groups.start, key_groups.end + 1)).tolist()
    if first == after:
        return
    groups, offsets = entry.key_groups[first:after], entry.offsets[first:after]
    # After a rescale, adjacent key groups need not be adjacent in the file.
    for run in np.split(np.arange(groups.size), np.flatnonzero(np.diff(offsets) < 0) + 1):
        start = int(offsets[run[0]])
        path, data = _read(storage, entry, start, int(offsets[run[-1]]))
        for key_group, offset in zip(groups[run].tolist(), offsets[run].tolist(), strict=True):
            header, sections = read_block(data, offset - start, path, start)
            if header.key_group != key_group:
                raise SegmentError(path, offset + 8, f"found key group {header.key_group}; expected {key_group}")
            yield path, offset, key_group, sections


def _read(storage: Storage, entry: SegmentRef, start: int, last: int) -> tuple[str, bytes]:
    """The path of a segment, and its bytes from `start` to the end of the block at `last`."""
    if entry.path is None:
        return f"{handle_name(entry)} in _metadata", bytes(entry.data[start:])
    name = in_location(entry.path)
    header = storage.read_range(name, last, HEADER_BYTES)
    # Decoding the block detects a truncated or wrong header.
    length = max(0, int.from_bytes(header[_BODY_LENGTH], "big", signed=True))
    return storage.describe(name), storage.read_range(name, start, last + HEADER_BYTES + length - start)


def _rows(buffer: Buffer, lengths: NDArray[np.int64]) -> Rows:
    return Rows(buffer, np.cumsum(lengths) - lengths, lengths)
