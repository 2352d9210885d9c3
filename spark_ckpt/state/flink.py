"""Keyed state of Flink's checkpoints and savepoints as Arrow, key group by key group, without Flink.

`spark_ckpt.read_state` finds the checkpoint of a location. With metadata and files at hand:

checkpoint, files = metadata.load("savepoint-4f1e2a"), StateFiles("savepoint-4f1e2a/_metadata")
for state in list_flink_states(checkpoint, files):
    print(state.operator_id.hex(), state.name, state.kind, state.columns.schema)
for batch in read_flink_state(checkpoint, files, state="counts").batches():
    print(batch.to_pandas())
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt import metadata as m
from spark_ckpt.metadata.streams import StateFiles
from spark_ckpt.state.flink_catalog import FlinkCatalog, FlinkState
from spark_ckpt.state.flink_columns import Values
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
        columns = self.state.columns
        for subtask, state_id, source in self.catalog.sources(self.state):
            rows: list[Values] = []
            key_groups: list[int] = []
            for key_group, entry in source.entries(state_id):
                found = columns.rows(entry)
                rows += found
                key_groups += [key_group] * len(found)
                while len(rows) >= BATCH_ROWS:
                    yield columns.batch(rows[:BATCH_ROWS], key_groups[:BATCH_ROWS], subtask)
                    del rows[:BATCH_ROWS], key_groups[:BATCH_ROWS]
            if rows:
                yield columns.batch(rows, key_groups, subtask)


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
