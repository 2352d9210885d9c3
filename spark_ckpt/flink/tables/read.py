"""Keyed state of Flink's checkpoints and savepoints as Arrow, key group by key group, without Flink.

`spark_ckpt.read_state` finds the checkpoint of a location. With metadata and files at hand:

checkpoint, files = metadata.load("savepoint-4f1e2a"), StateFiles("savepoint-4f1e2a/_metadata")
for state in list_flink_states(checkpoint, files):
    print(state.operator_id.hex(), state.name, state.kind, state.columns.schema)
for batch in read_flink_state(checkpoint, files, state="counts").batches():
    print(batch.to_pandas())
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_ckpt import metadata as m
from spark_ckpt.flink.streams import Entry, StateFiles, StateStreamFormatError
from spark_ckpt.flink.streams.heap_snapshot import Block, read_block_entries
from spark_ckpt.flink.tables.catalog import FlinkCatalog, FlinkState
from spark_ckpt.flink.tables.columns import Values
from spark_ckpt.flink.tables.rocksdb import entries_of_rows
from spark_ckpt.flink.tables.sources import KeyedSource
from spark_ckpt.flink.tables.vectors import BlockReader, VectorReader
from spark_ckpt.state.scan import Scan

BATCH_ROWS = 8192
"""Maximum rows of a batch, without a condition."""


@dataclass(frozen=True, slots=True, eq=False)
class FlinkScan(Scan):
    """A lazy table of keyed state of a Flink job.

    Every method that reads rows can raise a `StateStreamFormatError` or `RocksDbFormatError` for a damaged file, a
    `StorageError`, or an `UnsupportedFlinkStateError` for a value that Arrow cannot hold.

    Args:
        catalog: the state of the checkpoint.
        state: the state to read.
        condition: condition on rows, if any.
        limit: maximum number of rows, if any.
    """

    catalog: FlinkCatalog
    state: FlinkState
    condition: pc.Expression | None = None
    limit: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.state.columns.schema

    def all_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in batches of at most `BATCH_ROWS`."""
        max_parallelism = self.catalog.max_parallelism(self.state)
        for subtask, state_id, source in self.catalog.sources(self.state):
            if source.is_heap:
                blocks = BlockReader.of(source.header, state_id, max_parallelism)
                if blocks is not None:
                    yield from self._of_blocks(source, state_id, blocks, subtask)
                    continue
            elif (reader := VectorReader.of(source.header, state_id, max_parallelism)) is not None:
                yield from self._columns(source, state_id, reader, subtask)
                continue
            yield from self._batches(source.entries(state_id), subtask)

    def _of_blocks(
        self, source: KeyedSource, state_id: int, reader: BlockReader, subtask: int
    ) -> Iterator[pa.RecordBatch]:
        """Batches of a heap snapshot, decoded column by column where its blocks are plain."""
        waiting: list[Block] = []
        rows = 0
        for block in source.blocks(state_id):
            waiting.append(block)
            rows += len(block.ends)
            if rows >= BATCH_ROWS:
                yield from self._of_some_blocks(waiting, source, state_id, reader, subtask)
                waiting, rows = [], 0
        if waiting:
            yield from self._of_some_blocks(waiting, source, state_id, reader, subtask)

    def _of_some_blocks(
        self, blocks: Sequence[Block], source: KeyedSource, state_id: int, reader: BlockReader, subtask: int
    ) -> Iterator[pa.RecordBatch]:
        if (found := reader.read(blocks)) is not None:
            yield from self._sliced(*found, subtask)
            return
        try:
            entries = [
                (block.key_group, entry)
                for block in blocks
                for entry in read_block_entries(
                    block, source.header, state_id, reader.max_parallelism, f"state {self.state.name}"
                )
            ]
        except StateStreamFormatError:
            # Reading the entries in their place names the damage with its place.
            for _ in source.entries(state_id):
                pass
            raise
        yield from self._batches(entries, subtask)

    def _sliced(self, arrays: list[pa.Array], key_groups: NDArray[np.int32], subtask: int) -> Iterator[pa.RecordBatch]:
        batch = self.state.columns.of_arrays(arrays, key_groups, subtask)
        yield from (batch.slice(at, BATCH_ROWS) for at in range(0, len(batch), BATCH_ROWS))

    def _batches(self, entries: Iterable[tuple[int, Entry]], subtask: int) -> Iterator[pa.RecordBatch]:
        """Batches of entries, decoded one by one."""
        columns = self.state.columns
        rows: list[Values] = []
        key_groups: list[int] = []
        for key_group, entry in entries:
            found = columns.rows(entry)
            rows += found
            key_groups += [key_group] * len(found)
            while len(rows) >= BATCH_ROWS:
                yield columns.batch(rows[:BATCH_ROWS], key_groups[:BATCH_ROWS], subtask)
                del rows[:BATCH_ROWS], key_groups[:BATCH_ROWS]
        if rows:
            yield columns.batch(rows, key_groups, subtask)

    def _columns(
        self, source: KeyedSource, state_id: int, reader: VectorReader, subtask: int
    ) -> Iterator[pa.RecordBatch]:
        """Batches of rows, decoded column by column where they are plain."""
        rows = source.rows(state_id)
        while part := list(islice(rows, BATCH_ROWS)):
            if (found := reader.read(part)) is not None:
                # A list has several rows.
                yield from self._sliced(*found, subtask)
                continue
            try:
                entries = list(
                    entries_of_rows(part, source.header, state_id, reader.max_parallelism, f"state {self.state.name}")
                )
            except StateStreamFormatError:
                # Reading the entries in their place names the damage with its place.
                for _ in source.entries(state_id):
                    pass
                raise
            yield from self._batches(entries, subtask)


def list_flink_states(checkpoint: m.CheckpointMetadata, files: StateFiles) -> tuple[FlinkState, ...]:
    """Keyed states of a checkpoint or savepoint.

    Args:
        checkpoint: metadata of the checkpoint.
        files: opener of its state files.

    Raises:
        UnsupportedFlinkStateError: all of the state is in a changelog.
        StateStreamFormatError, RocksDbFormatError, StorageError: a file is damaged, or cannot be read.
    """
    return _catalog(checkpoint, files).states()


def read_flink_state(
    checkpoint: m.CheckpointMetadata, files: StateFiles, *, state: str | None = None, operator: str | None = None
) -> FlinkScan:
    """A keyed state, of all subtasks, as a lazy table; `read_state` describes its columns.

    Args:
        checkpoint: metadata of the checkpoint.
        files: opener of its state files.
        state: name of the state; required if there are several.
        operator: id in hexadecimal, uid or name of the operator; required if several have a state of this name.

    Raises:
        StateNotFoundError: no such state, or one must be selected.
        UnsupportedFlinkStateError, StateStreamFormatError, RocksDbFormatError, StorageError: as in `list_flink_states`.
    """
    catalog = _catalog(checkpoint, files)
    return FlinkScan(catalog, catalog.choose(operator, state))


def _catalog(checkpoint: m.CheckpointMetadata, files: StateFiles) -> FlinkCatalog:
    return FlinkCatalog(f"checkpoint {checkpoint.checkpoint_id}", checkpoint, files)
