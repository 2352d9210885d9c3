"""Deterministic input: folders of JSON files, read by a file source one file per batch in order of creation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

Row = Sequence[object]

EPOCH = datetime(2024, 1, 1, tzinfo=timezone.utc)
FAR_AHEAD = 1_000_000
"""Offset from EPOCH, in seconds, of the rows that push the watermark past everything else."""

_FIRST_MODIFIED = 1_700_000_000


def at(seconds: float) -> datetime:
    """The moment `seconds` after the start of every feed, as a naive UTC timestamp like PySpark's."""
    return (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None)


class Feed:
    """A folder of numbered files; each file becomes one batch of the stream."""

    def __init__(self, folder: Path, schema: str) -> None:
        self.folder = folder
        self.schema = schema
        self._fields = _fields(schema)
        self.batches: list[list[Row]] = []
        folder.mkdir(parents=True, exist_ok=True)

    def drop(self, rows: Iterable[Row]) -> None:
        """Publishes one more file atomically, younger than all before."""
        batch = list(rows)
        number = len(self.batches)
        hidden = self.folder / f".{number:06}"
        lines = (json.dumps(dict(zip(self._fields, row, strict=True)), default=_text) for row in batch)
        hidden.write_text("".join(line + "\n" for line in lines))
        moment = _FIRST_MODIFIED + number
        os.utime(hidden, (moment, moment))
        hidden.rename(self.folder / f"{number:06}.json")
        self.batches.append(batch)

    def rows(self) -> list[tuple[object, ...]]:
        """All rows dropped so far, in order."""
        return [tuple(row) for batch in self.batches for row in batch]

    def stream(self, spark: SparkSession, files_per_batch: int = 1) -> DataFrame:
        """The folder as a stream."""
        reader = spark.readStream.schema(self.schema).option("maxFilesPerTrigger", files_per_batch)
        return reader.json(str(self.folder))

    def table(self, spark: SparkSession) -> DataFrame:
        """The folder as a plain table, for the batch answer."""
        return spark.read.schema(self.schema).json(str(self.folder))


def _fields(schema: str) -> list[str]:
    """Column names of a DDL schema without commas in its types, parsed without the JVM."""
    return [column.split()[0] for column in schema.split(",")]


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    raise TypeError(f"no JSON for {value!r}")
