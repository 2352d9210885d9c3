"""The workload: a running count by key, and one provider's queries over it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

SPARKS_OWN = frozenset({"offsets", "commits", "sources"})
"""Logs of Spark that every provider's query writes alike."""

FIRST_MODIFIED = 1_700_000_000
PATIENCE = 600.0

_STATE_STORE = "spark.sql.streaming.stateStore."
_BUILT_IN = "org.apache.spark.sql.execution.streaming.state."


@dataclass(frozen=True)
class Contender:
    """A state-store provider with its settings."""

    name: str
    class_name: str
    settings: Mapping[str, str]


CONTENDERS = (
    Contender(
        "spark-ckpt", "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider", {_STATE_STORE + "ckpt.retained": "100"}
    ),
    Contender(
        "RocksDB, changelog",
        _BUILT_IN + "RocksDBStateStoreProvider",
        {_STATE_STORE + "rocksdb.changelogCheckpointing.enabled": "true"},
    ),
    Contender("HDFSBacked", _BUILT_IN + "HDFSBackedStateStoreProvider", {}),
)
"""All keep the files of 100 batches or more (Spark's default), so that nothing is deleted while objects are counted."""


@dataclass(frozen=True)
class Batch:
    """What Spark reported of one batch.

    Args:
        duration_ms: of the whole batch.
        state_ms: updates and commits of the state stores, the sum over all tasks.
        rows: rows of state after it.
    """

    duration_ms: int
    state_ms: int
    rows: int


@dataclass(frozen=True)
class Run:
    """One start of a query until its input is done.

    Args:
        restore_ms: from the start to the commit of its first batch.
        batches: what Spark reported, in order; the first includes the restore.
        objects: new files below the checkpoint location, without Spark's own logs, hidden files and empty folders.
    """

    restore_ms: float
    batches: list[Batch]
    objects: int


class Input:
    """Files of keys: the first has all of them, each of the others another sample."""

    def __init__(self, keys: int, changed: int, seed: int) -> None:
        self.keys = keys
        self.changed = changed
        self._random = random.Random(seed)
        self._files = self._samples()

    def next(self) -> pa.Table:
        """The keys of the next file."""
        return pa.table({"key": pa.array(next(self._files), pa.int64())})

    def _samples(self) -> Iterator[Any]:
        yield range(self.keys)
        while True:
            yield self._random.sample(range(self.keys), self.changed)


class Counting:
    """The running count of one provider with one number of partitions, on a folder of its own."""

    def __init__(self, spark: SparkSession, contender: Contender, partitions: int, folder: Path) -> None:
        self.contender = contender
        self.partitions = partitions
        self.location = folder / "checkpoint"
        self._input = folder / "input"
        self._input.mkdir(parents=True)
        self._dropped = 0
        self._rows = 0
        self._spark = spark.newSession()
        settings = {
            _STATE_STORE + "providerClass": contender.class_name,
            "spark.sql.shuffle.partitions": str(partitions),
            **contender.settings,
        }
        for key, value in settings.items():
            self._spark.conf.set(key, value)

    def drop(self, table: pa.Table) -> None:
        """One more batch of input."""
        target = self._input / f"{self._dropped:06}.parquet"
        hidden = self._input / f".{target.name}"
        pq.write_table(table, hidden)
        moment = FIRST_MODIFIED + self._dropped  # the file source takes the oldest file first
        os.utime(hidden, (moment, moment))
        hidden.rename(target)
        self._dropped += 1
        self._rows += table.num_rows

    def run(self) -> Run:
        """Starts the query, lets it work off its input batch by batch, and stops it."""
        before = self._objects()
        first = _last_number(self.location / "commits") + 1
        stream = self._spark.readStream.schema("key long").option("maxFilesPerTrigger", 1).parquet(str(self._input))
        writer = stream.groupBy("key").count().writeStream.format("noop").outputMode("update")
        writer = writer.option("checkpointLocation", str(self.location)).trigger(availableNow=True)
        began = time.monotonic()
        query = writer.start()
        _await(self.location / "commits" / str(first), query)
        restore_ms = (time.monotonic() - began) * 1000
        query.awaitTermination()
        batches = [_batch(progress) for progress in query.recentProgress if progress["numInputRows"]]
        return Run(restore_ms, batches, len(self._objects() - before))

    def check(self) -> None:
        """Makes sure that the state holds every row that was put in."""
        state = self._spark.read.format("statestore").load(str(self.location))
        counted = state.selectExpr("sum(value.count)").first()
        if counted is None or counted[0] != self._rows:
            raise AssertionError(f"{self.contender.name}: the state counts {counted}, {self._rows} rows were put in")

    def _objects(self) -> set[Path]:
        files = (file for file in self.location.rglob("*") if file.is_file())
        return {
            file
            for file in files
            if not file.name.startswith(".") and file.relative_to(self.location).parts[0] not in SPARKS_OWN
        }


def _batch(progress: StreamingQueryProgress) -> Batch:
    operators = progress["stateOperators"]
    return Batch(
        duration_ms=progress["batchDuration"],
        state_ms=sum(operator["allUpdatesTimeMs"] + operator["commitTimeMs"] for operator in operators),
        rows=sum(operator["numRowsTotal"] for operator in operators),
    )


def _await(file: Path, query: StreamingQuery) -> None:
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        error = query.exception()
        if error is not None:
            raise error
        if time.monotonic() > deadline:
            raise TimeoutError(f"{file} did not appear in {PATIENCE} s")
        time.sleep(0.002)


def _last_number(folder: Path) -> int:
    numbers = [int(file.name) for file in folder.glob("[0-9]*")]
    return max(numbers, default=-1)
