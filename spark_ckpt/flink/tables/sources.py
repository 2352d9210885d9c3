"""Keyed state of one handle of Flink's: a stream of key groups, or files of RocksDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import Entry, KeyedState, Layout, StateFiles
from spark_ckpt.flink.streams.headers import KeyedHeader
from spark_ckpt.flink.streams.heap_snapshot import Block
from spark_ckpt.flink.tables.rocksdb import RocksDbState


class KeyedSource(Protocol):
    """Keyed state of one handle: its states, and the entries of each with their key groups, which ascend."""

    @property
    def header(self) -> KeyedHeader:
        """Description of the states."""
        ...

    @property
    def is_heap(self) -> bool:
        """True for a heap snapshot, whose entries have no lengths."""
        ...

    def entries(self, state_id: int) -> Iterator[tuple[int, Entry]]:
        """Entries of a state, with their key groups."""
        ...

    def rows(self, state_id: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of a state, with the key group before each key. Not of a heap snapshot."""
        ...

    def blocks(self, state_id: int) -> Iterator[Block]:
        """Entries of a state of a heap snapshot, not decoded."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


KeyedHandle = m.KeyGroupsStateHandle | m.KeyGroupsSavepointStateHandle | m.IncrementalRemoteKeyedStateHandle
"""Handles with readable rows."""


def open_source(handle: KeyedHandle, files: StateFiles, max_parallelism: int) -> KeyedSource:
    """Open a handle.

    Raises:
        UnsupportedFlinkStateError: its rows cannot be read.
        StateStreamFormatError, StorageError: it is damaged, or cannot be read.
    """
    if isinstance(handle, m.IncrementalRemoteKeyedStateHandle):
        return RocksDbState(handle, files, max_parallelism)
    return StreamSource(handle, files, max_parallelism)


class StreamSource:
    """Keyed state in one stream, of a heap snapshot or a canonical savepoint.

    Args:
        handle: handle of the state.
        files: opener of its stream.
        max_parallelism: number of key groups of the operator.
    """

    def __init__(
        self,
        handle: m.KeyGroupsStateHandle | m.KeyGroupsSavepointStateHandle,
        files: StateFiles,
        max_parallelism: int,
    ) -> None:
        with ExitStack() as opened:
            stream = opened.enter_context(files.open(handle.delegate_state_handle))
            self._state = KeyedState(handle, stream, max_parallelism)
            self._opened = opened.pop_all()
        self.header: KeyedHeader = self._state.header
        self.is_heap: bool = self._state.layout is Layout.HEAP

    def entries(self, state_id: int) -> Iterator[tuple[int, Entry]]:
        """Entries of a state, with their key groups.

        Raises:
            UnknownSerializerError: bytes of an unknown serializer lie before the entries of the state.
            StateStreamFormatError, StorageError: a key group is damaged, or cannot be read.
        """
        for group in self._state.key_groups():
            for entry in self._state.entries(group, only=state_id):
                yield group.key_group, entry

    def rows(self, state_id: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of a state of a full snapshot, with the key group before each key.

        Raises:
            StateStreamFormatError, StorageError: a key group is damaged, or cannot be read.
        """
        for group in self._state.key_groups():
            yield from self._state.rows(group, state_id)

    def blocks(self, state_id: int) -> Iterator[Block]:
        """Entries of a state of a heap snapshot, not decoded.

        Raises:
            UnknownSerializerError: bytes of an unknown serializer lie before the entries of the state.
            StateStreamFormatError, StorageError: a key group is damaged, or cannot be read.
        """
        for group in self._state.key_groups():
            yield from self._state.blocks(group, state_id)

    def close(self) -> None:
        """Close the stream."""
        self._opened.close()
