"""Sinks whose final content is comparable with a batch answer."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

Rows = list[tuple[object, ...]]


class Sink(Protocol):
    """Destination of a query, and its final content."""

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        """Directs the query's output to this sink."""

    def rows(self, spark: SparkSession) -> Rows:
        """Output of the query: the content after the last batch."""


class ParquetSink:
    """Spark's own file sink: exactly once, append only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.outputMode("append").format("parquet").option("path", str(self.folder))

    def rows(self, spark: SparkSession) -> Rows:
        return [tuple(row) for row in spark.read.parquet(str(self.folder)).collect()]


class BatchLog:
    """Keeps the rows of each batch by batch id; a rerun batch replaces its earlier rows.

    `keys` is the number of leading columns that identify a row in update mode.
    """

    def __init__(self, folder: Path, mode: str, keys: int = 1) -> None:
        self.folder = folder
        self.mode = mode
        self.keys = keys
        folder.mkdir(parents=True, exist_ok=True)

    def attach(self, writer: DataStreamWriter) -> DataStreamWriter:
        return writer.outputMode(self.mode).foreachBatch(self.write)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Stores one batch atomically."""
        rows = [tuple(row) for row in frame.collect()]
        hidden = self.folder / f".{batch_id}"
        hidden.write_bytes(pickle.dumps(rows))
        hidden.rename(self.folder / f"{batch_id:010}")

    def batches(self) -> dict[int, Rows]:
        """Rows by batch id, in order."""
        files = sorted(self.folder.glob("[0-9]*"))
        return {int(file.name): pickle.loads(file.read_bytes()) for file in files}

    def rows(self, spark: SparkSession | None = None) -> Rows:
        batches = list(self.batches().values())
        if self.mode == "complete":
            return batches[-1] if batches else []
        if self.mode == "append":
            return [row for batch in batches for row in batch]
        latest = {row[: self.keys]: row for batch in batches for row in batch}
        return list(latest.values())


def assert_same_rows(actual: Rows, expected: Rows) -> None:
    """Asserts equality as multisets; on failure shows the differing rows only."""
    missing = _minus(expected, actual)
    surplus = _minus(actual, expected)
    assert not missing and not surplus, (
        f"{len(actual)} rows instead of {len(expected)}; missing {missing[:10]}, surplus {surplus[:10]}"
    )
    assert expected, "an empty answer proves nothing"


def _minus(left: Rows, right: Rows) -> Rows:
    return list((Counter(left) - Counter(right)).elements())
