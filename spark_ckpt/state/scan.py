"""A lazy table of state, whatever wrote it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from spark_ckpt.state.export import write_delta, write_parquet

if TYPE_CHECKING:
    import pandas as pd


class Scan(ABC):
    """A lazy table of state.

    Every method that reads rows can raise an error for a damaged file, or a `StorageError`.
    """

    __slots__ = ()

    condition: pc.Expression | None
    limit: int | None

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""

    @abstractmethod
    def all_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, without condition and limit."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, a few key groups at a time."""
        left = self.limit
        for batch in self.all_batches():
            for chosen in [batch] if self.condition is None else _filtered(batch, self.condition):
                part = chosen.slice(0, left)
                if len(part):
                    yield part
                if left is not None:
                    left -= len(part)
            if left == 0:
                return

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of batches, read on demand."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """All rows; structs are dictionaries. Needs pandas."""
        return self.to_arrow().to_pandas()

    def to_parquet(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows to a new Parquet file.

        Args:
            path: path or URL of the new file.

        Returns:
            Number of rows.

        Raises:
            TargetExistsError: the file exists already.
            StorageError: it cannot be written.
        """
        return write_parquet(self.schema, self.batches(), os.fspath(path))

    def to_delta(self, path: str | os.PathLike[str]) -> int:
        """Writes the rows to a new Delta table, with types that Delta lacks converted (see `write_delta`).

        Args:
            path: path or URL of a directory without a Delta table.

        Returns:
            Number of rows.

        Raises:
            TargetExistsError: a Delta table exists already.
            StorageError: it cannot be written.
        """
        return write_delta(self.schema, self.batches(), os.fspath(path))


def _filtered(batch: pa.RecordBatch, condition: pc.Expression) -> list[pa.RecordBatch]:
    # All supported releases of Arrow filter tables by expressions; only the newest filters batches.
    batches: list[pa.RecordBatch] = pa.Table.from_batches([batch]).filter(condition).to_batches()
    return batches
