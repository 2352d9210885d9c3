"""Managed keyed state in one stream: its header, its layout, and its key groups one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from spark_ckpt.flink.streams.entries import Entry
from spark_ckpt.flink.streams.errors import StateStreamFormatError
from spark_ckpt.flink.streams.full_snapshot import read_full_entries, read_raw_rows
from spark_ckpt.flink.streams.headers import KeyedHeader, read_keyed_header
from spark_ckpt.flink.streams.heap_snapshot import Block, read_heap_blocks, read_heap_entries
from spark_ckpt.flink.streams.state_files import StateStream
from spark_ckpt.metadata.handles import KeyGroupsSavepointStateHandle, KeyGroupsStateHandle

_NO_ENTRIES = 0
_GROUPS_LOOKED_AT = 3


class Layout(Enum):
    """Layout of the key groups of a stream."""

    HEAP = "heap snapshot"
    FULL = "full snapshot"


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """One key group of a stream.

    Args:
        key_group: number of the key group.
        offset: start in the stream.
        size: bytes of the key group; for the last one of a handle, all remaining bytes of the stream.
    """

    key_group: int
    offset: int
    size: int


class KeyedState:
    """Keyed state of one handle.

    Full snapshots have their own class of handle only since canonical savepoints. Older releases use
    `KeyGroupsStateHandle` for both layouts, and only the backend knows which. The stream tells them apart: in a full
    snapshot, a key group without entries has offset 0; in a heap snapshot, each key group begins with its number.

    Args:
        handle: handle of the state.
        stream: open stream of the handle; must stay open.
        max_parallelism: number of key groups of the operator.

    Raises:
        StateStreamFormatError: the header is malformed, or a key group is outside the stream or the operator's range.
        StorageError: the stream cannot be read.
    """

    def __init__(
        self, handle: KeyGroupsStateHandle | KeyGroupsSavepointStateHandle, stream: StateStream, max_parallelism: int
    ) -> None:
        self._stream = stream
        self._max_parallelism = max_parallelism
        groups = handle.group_range_offsets
        if len(groups.key_group_range) and groups.key_group_range.end >= max_parallelism:
            reason = f"key groups {groups.key_group_range} of an operator with {max_parallelism}"
            raise StateStreamFormatError(stream.path, 0, "key_group_range", reason)
        self._key_groups = self._with_sizes(groups.key_group_range.start, groups.offsets)
        first = min((group.offset for group in self._key_groups), default=stream.size)
        data = stream.input(0, first)
        self.header: KeyedHeader = read_keyed_header(data)
        """Header of the stream."""
        canonical = isinstance(handle, KeyGroupsSavepointStateHandle)
        self.layout: Layout = Layout.FULL if canonical or not groups.offsets.all() else self._guess_layout()
        """Layout of the key groups."""

    @property
    def can_read_entries(self) -> bool:
        """True if entries can be separated: full snapshots have their lengths, heap snapshots require serializers."""
        return self.layout is Layout.FULL or self.header.unknown is None

    def key_groups(self) -> tuple[KeyGroup, ...]:
        """Key groups in the stream, ascending. In a full snapshot, each has entries."""
        return self._key_groups

    def entries(self, group: KeyGroup, only: int | None = None) -> Iterator[Entry]:
        """Entries of a key group, state by state.

        Args:
            group: the key group.
            only: id of a state, to skip the entries of others; None for all states.

        Raises:
            UnknownSerializerError: the entries cannot be separated.
            StateStreamFormatError: malformed, or another key group.
            StorageError: the stream cannot be read.
        """
        read = read_full_entries if self.layout is Layout.FULL else read_heap_entries
        data = self._stream.input(group.offset, group.offset + group.size)
        # Key groups are contiguous, but a handle may have only some of them.
        open_end = group.offset + group.size == self._stream.size
        return read(data, self.header, group.key_group, self._max_parallelism, open_end=open_end, only=only)

    def rows(self, group: KeyGroup, state_id: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of one state in a key group of a full snapshot, with the key group before each key.

        Raises:
            StateStreamFormatError: malformed.
            StorageError: the stream cannot be read.
        """
        data = self._stream.input(group.offset, group.offset + group.size)
        return read_raw_rows(data, self.header, group.key_group, state_id)

    def blocks(self, group: KeyGroup, state_id: int) -> Iterator[Block]:
        """Entries of one state in a key group of a heap snapshot, not decoded.

        Raises:
            UnknownSerializerError: the entries cannot be separated.
            StateStreamFormatError: malformed, or another key group.
            StorageError: the stream cannot be read.
        """
        data = self._stream.input(group.offset, group.offset + group.size)
        return read_heap_blocks(data, self.header, group.key_group, state_id, self._max_parallelism)

    def raw(self, group: KeyGroup) -> bytes:
        """All bytes of a key group, unchanged from the stream.

        Raises:
            StorageError: the stream cannot be read.
        """
        return self._stream.input(group.offset, group.offset + group.size).raw(group.size, "key_group")

    def _with_sizes(self, first: int, offsets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[KeyGroup, ...]:
        starts = np.unique(offsets[offsets != _NO_ENTRIES])
        ends = np.append(starts[1:], self._stream.size)
        found = []
        for key_group, offset in enumerate(offsets.tolist(), first):
            if offset != _NO_ENTRIES:
                end = int(ends[np.searchsorted(starts, offset)])
                if not 0 < offset <= end <= self._stream.size:
                    reason = f"key group {key_group} begins at {offset} of {self._stream.size} bytes"
                    raise StateStreamFormatError(self._stream.path, offset, "offsets", reason)
                found.append(KeyGroup(key_group, offset, end - offset))
        return tuple(found)

    def _guess_layout(self) -> Layout:
        # In a full snapshot, the upper half of the first key's length is there: 0 for keys below 64 KiB.
        looked_at = [group for group in self._key_groups if group.key_group != 0][:_GROUPS_LOOKED_AT]
        for group in looked_at:
            if self._first_number(group) == group.key_group:
                return Layout.HEAP
        if looked_at or not self._key_groups:
            return Layout.FULL
        # Only key group 0: a full snapshot of state 0 begins with the same bytes. Only one layout fits up to the end.
        (only,) = self._key_groups
        try:
            for _ in read_full_entries(
                self._stream.input(only.offset), self.header, only.key_group, self._max_parallelism, open_end=True
            ):
                pass
        except StateStreamFormatError:
            return Layout.HEAP
        return Layout.FULL

    def _first_number(self, group: KeyGroup) -> int:
        return self._stream.input(group.offset, group.offset + group.size).i32("key_group")
