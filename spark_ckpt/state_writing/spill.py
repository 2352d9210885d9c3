"""Encoded rows of one store on the local disk, sorted by partition and key group."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_ckpt.errors import StorageError
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.state_writing.placement import PLACED, Placement, in_order

BUFFER_BYTES = 64 << 20
"""Bytes of rows in memory before they are sorted and written."""


class RowSpill:
    """Rows of one store, in a temporary file that is deleted in any case.

    Args:
        parallelism: number of partitions of the store.
        key_group_factors: numbering of the key groups.
        families: column families of the store, in the order of sections.
        buffer_bytes: bytes in memory before they are written; by default `BUFFER_BYTES`.

    Raises:
        StorageError: the temporary directory has no space, or cannot be written.
    """

    def __init__(
        self,
        parallelism: int,
        key_group_factors: Sequence[int],
        families: Sequence[str],
        buffer_bytes: int | None = None,
    ) -> None:
        self._placement = Placement(parallelism, key_group_factors, families)
        self._buffer_bytes = BUFFER_BYTES if buffer_bytes is None else buffer_bytes
        self._buffer: list[pa.RecordBatch] = []
        self._buffered_bytes = 0
        self._edges: list[NDArray[np.int64]] = []
        descriptor, path = tempfile.mkstemp(prefix="spark-ckpt-rows-")
        os.close(descriptor)
        self._file = Path(path)
        self._writer = pa.ipc.new_file(str(self._file), PLACED)

    def __enter__(self) -> RowSpill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._writer.close()
        self._file.unlink(missing_ok=True)

    def add(self, rows: FamilyRows) -> None:
        """Adds rows of a column family. Those of a list keep their order."""
        batch = self._placement.placed(rows)
        self._buffer.append(batch)
        self._buffered_bytes += batch.nbytes
        if self._buffered_bytes >= self._buffer_bytes:
            self._flush()

    def partitions(self) -> Iterator[pa.Table]:
        """Rows of each partition, in the order of partitions, sorted by key group and family. Ends the adding."""
        try:
            self._flush()
            self._writer.close()
            with pa.memory_map(str(self._file)) as source:
                reader = pa.ipc.open_file(source)
                batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
                for partition in range(self._placement.parallelism):
                    parts = [
                        batch.slice(edges[partition], edges[partition + 1] - edges[partition])
                        for batch, edges in zip(batches, self._edges, strict=True)
                    ]
                    yield in_order(pa.Table.from_batches(parts, PLACED))
        except OSError as e:
            raise self._failed(e) from e

    def _flush(self) -> None:
        if not self._buffer:
            return
        table = pa.Table.from_batches(self._buffer, PLACED)
        self._buffer, self._buffered_bytes = [], 0
        partition = table.column("partition").to_numpy()
        order = np.argsort(partition, kind="stable")
        # One chunk, so that it becomes one batch.
        ordered = table.take(pa.array(order)).combine_chunks()
        try:
            self._writer.write_table(ordered, max_chunksize=max(1, len(ordered)))
        except OSError as e:
            raise self._failed(e) from e
        self._edges.append(
            np.searchsorted(partition[order], np.arange(self._placement.parallelism + 1)).astype(np.int64)
        )

    def _failed(self, error: OSError) -> StorageError:
        reason = f"{error}. Set TMPDIR to a directory with more space"
        return StorageError(str(self._file), "write", reason)
