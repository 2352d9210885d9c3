"""Keyed state in files of RocksDB: Flink's incremental checkpoints and native savepoints.

The handle has `CURRENT`, MANIFEST and the tables, each with its name in the database, and a meta stream with the header
that other keyed streams have. Each state is a column family of its name; a row has the key and the value of an entry of
a full snapshot (`RocksIncrementalSnapshotStrategy`, `RocksDBIncrementalRestoreOperation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from itertools import groupby
from types import TracebackType

from spark_ckpt import metadata as m
from spark_ckpt.flink.rocksdb import Database
from spark_ckpt.flink.streams import Entry, StateFiles, StateStream, StateStreamFormatError
from spark_ckpt.flink.streams.full_snapshot import key_group_of_row, prefix_bytes, read_row_entries
from spark_ckpt.flink.streams.headers import KeyedHeader, read_keyed_header
from spark_ckpt.flink.streams.heap_snapshot import Block
from spark_ckpt.state.errors import UnsupportedFlinkStateError


class RocksDbState:
    """Keyed state of one incremental handle. A context manager, which closes its files.

    Rows have their lengths, as those of a full snapshot.

    Args:
        handle: handle of the state.
        files: opener of its files.
        max_parallelism: number of key groups of the operator.

    Raises:
        UnsupportedFlinkStateError: the handle has no meta stream, as only Flink's own tests write it.
        StateStreamFormatError: the meta stream is damaged, or a key group is outside the operator's range.
        StorageError: it cannot be read.
    """

    is_heap = False

    def __init__(self, handle: m.IncrementalRemoteKeyedStateHandle, files: StateFiles, max_parallelism: int) -> None:
        if handle.meta_data_state_handle is None:
            raise UnsupportedFlinkStateError(handle.backend_identifier, "it has no description of its states")
        self._key_groups = handle.key_group_range
        self._max_parallelism = max_parallelism
        self._opened = ExitStack()
        with files.open(handle.meta_data_state_handle) as stream:
            self.header: KeyedHeader = read_keyed_header(stream.input())
            """Description of the states."""
            self.path = stream.path
        groups = handle.key_group_range
        if len(groups) and groups.end >= max_parallelism:
            reason = f"key groups {groups} of an operator with {max_parallelism}"
            raise StateStreamFormatError(self.path, 0, "key_group_range", reason)
        self._current = f"backend {handle.backend_identifier}"
        self._files = {
            file.local_path.rpartition("/")[2]: _HandleFile(file.local_path, file.handle, files, self._opened)
            for file in (*handle.shared_state, *handle.private_state)
        }

    @cached_property
    def _database(self) -> Database:
        """Opened for rows only: a list of states needs its header alone."""
        return Database(self._files, self._current)

    def entries(self, state_id: int) -> Iterator[tuple[int, Entry]]:
        """Entries of a state with their key groups, in the order of their keys.

        Rows of other key groups, which a rescaled job leaves in its files, are skipped.

        Raises:
            RocksDbFormatError, MissingTableError: a table is damaged or missing.
            StateStreamFormatError: a row does not fit the serializers.
        """
        path = f"{self.path}, state {self.header.states[state_id].name}"
        return entries_of_rows(self.rows(state_id), self.header, state_id, self._max_parallelism, path)

    def rows(self, state_id: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values of a state, with the key group before each key, in the order of the keys.

        Raises:
            RocksDbFormatError, MissingTableError: a table is damaged or missing.
        """
        size = prefix_bytes(self._max_parallelism)
        first, last = (group.to_bytes(size, "big") for group in (self._key_groups.start, self._key_groups.end))
        for row in self._database.rows(self.header.states[state_id].name):
            # A key that is too short for a key group is damage, which its reader names.
            if first <= row[0][:size] <= last or len(row[0]) < size:
                yield row

    def blocks(self, state_id: int) -> Iterator[Block]:
        """RocksDB has no heap snapshots.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError

    def check_others(self) -> None:
        """Read the column families that the header does not name, without their meaning.

        Raises:
            RocksDbFormatError, MissingTableError: a table is damaged or missing.
        """
        named = {state.name for state in self.header.states}
        for family in self._database.column_families:
            if family not in named:
                for _ in self._database.rows(family):
                    pass

    def __enter__(self) -> RocksDbState:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._opened.close()


def entries_of_rows(
    rows: Iterable[tuple[bytes, bytes]], header: KeyedHeader, state_id: int, max_parallelism: int, path: str
) -> Iterator[tuple[int, Entry]]:
    """Entries of a state, with their key groups.

    Args:
        rows: keys and values, with the key group before each key.
        header: header of their stream.
        state_id: position of the state in the header.
        max_parallelism: number of key groups of the operator.
        path: name of the rows, for errors.

    Raises:
        StateStreamFormatError: a row does not fit the serializers.
    """
    for key_group, of_group in groupby(rows, lambda row: key_group_of_row(row[0], max_parallelism)):
        for entry in read_row_entries(of_group, header, state_id, key_group, max_parallelism, path=path):
            yield key_group, entry


class _HandleFile:
    """File of a handle, opened on first use."""

    def __init__(self, name: str, handle: m.StreamStateHandle, files: StateFiles, opened: ExitStack) -> None:
        self._name = name
        self._handle = handle
        self._files = files
        self._opened = opened
        self._stream: StateStream | None = None

    @property
    def name(self) -> str:
        """Name in the storage, once it is known, and in the database."""
        return self._name if self._stream is None else f"{self._stream.path} ({self._name})"

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._open().size

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        return self._open().input(offset, offset + length).raw(length, "block")

    def _open(self) -> StateStream:
        if self._stream is None:
            self._stream = self._opened.enter_context(self._files.open(self._handle))
        return self._stream
