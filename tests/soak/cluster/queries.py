"""Queries of the cluster soak, each with its answer by plain arithmetic.

Each reads `rate-micro-batch`, whose batch N has the values from N * rows to (N + 1) * rows - 1, whatever was stopped
or killed. So the number of committed batches determines the state and the output.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from spark_ckpt import read_state
from spark_ckpt.location.listing import list_completed
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import committed_batches

SCATTER = 2_654_435_761
"""A prime above each number of keys: consecutive values change keys all over the state."""

DIGEST_BYTES = 32

WINDOW_SECONDS = 20
DELAY_SECONDS = 10
"""Of the watermark. A batch has one second of event time."""

LAG_BATCHES = 3
"""Batches after which the right side of the join has the rows of the left one."""


@dataclass(frozen=True)
class SoakQuery(ABC):
    """A query on a folder of its own.

    Args:
        folder: parent of its checkpoint location and of its output.
        rows: rows of a batch and source.
    """

    folder: Path
    rows: int

    @property
    @abstractmethod
    def name(self) -> str:
        """Name for people and for folders."""

    @property
    def location(self) -> Path:
        """Its checkpoint location."""
        return self.folder / self.name / "checkpoint"

    @property
    def batches(self) -> int:
        """Number of batches committed by Spark."""
        return max(committed_batches(self.location), default=-1) + 1

    def start(self, spark: SparkSession, interval: str = "0 seconds") -> StreamingQuery:
        """Starts a run, with a batch at each multiple of the interval."""
        writer = self._frame(spark).writeStream.outputMode(self._mode).trigger(processingTime=interval)
        writer = writer.option("checkpointLocation", str(self.location)).queryName(self.name)
        output = self._output
        writer = writer.format("noop") if output is None else writer.format("json").option("path", str(output))
        return writer.start()

    @abstractmethod
    def check(self, spark: SparkSession) -> list[str]:
        """Differences from the batch answer, in words. The query is stopped."""

    @abstractmethod
    def _frame(self, spark: SparkSession) -> DataFrame: ...

    @property
    def _mode(self) -> str:
        return "update"

    @property
    def _output(self) -> Path | None:
        return None

    def _source(self, spark: SparkSession) -> DataFrame:
        stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.rows)
        return stream.option("numPartitions", 2).load().select("value", self._time(sf.col("value")).alias("time"))

    def _time(self, value: Column) -> Column:
        # From 1 on: the first watermark is 0, and a row at 0 is late.
        return sf.timestamp_seconds((value / self.rows).cast("long") + 1)

    def _state(self) -> pa.Table:
        """State after the last committed batch. A stop may leave a newer checkpoint, whose batch is repeated."""
        records = list_completed(LocalStorage(self.location)).records
        newest = next(record for record in reversed(records) if record.version <= self.batches)
        return read_state(self.location, id=newest.id).to_arrow()

    def _values(self) -> NDArray[np.int64]:
        return np.arange(self.batches * self.rows, dtype=np.int64)


@dataclass(frozen=True)
class LargeCount(SoakQuery):
    """An aggregation over many keys with wide values: base snapshots take many batches.

    Args:
        keys: number of keys.
        width: bytes of a value's text, behind its number.
    """

    keys: int = 0
    width: int = 0

    @property
    def name(self) -> str:
        return "count"

    def _frame(self, spark: SparkSession) -> DataFrame:
        key = ((sf.col("value") * SCATTER) % self.keys).alias("key")
        # The number comes first, so that the largest text is the newest one. Digests do not compress.
        digests = [sf.md5((sf.col("value") + i).cast("string")) for i in range(self.width // DIGEST_BYTES)]
        text = sf.concat(sf.format_string("%012d", "value"), *digests)
        return (
            self._source(spark)
            .groupBy(key)
            .agg(sf.count("*").alias("n"), sf.sum("value").alias("total"), sf.max(text).alias("newest"))
        )

    def check(self, spark: SparkSession) -> list[str]:
        values = self._values()
        keys = (values * SCATTER) % self.keys
        count, total = np.zeros(self.keys, np.int64), np.zeros(self.keys, np.int64)
        newest = np.zeros(self.keys, np.int64)
        np.add.at(count, keys, 1)
        np.add.at(total, keys, values)
        np.maximum.at(newest, keys, values)
        state = self._state()
        found = _numbers(_field(state, "key", 0))
        order = np.argsort(found)
        present = np.flatnonzero(count)
        if not np.array_equal(found[order], present):
            return [f"count: {len(found)} keys in the state, {len(present)} in the input up to batch {self.batches}"]
        text = pc.cast(pc.utf8_slice_codeunits(_field(state, "value", 2), 0, 12), pa.int64())
        columns = {
            "n": (_numbers(_field(state, "value", 0)), count),
            "total": (_numbers(_field(state, "value", 1)), total),
            "newest": (_numbers(text), newest),
        }
        wrong = {name: int(np.sum(have[order] != want[present])) for name, (have, want) in columns.items()}
        return [f"count: {number} keys have a wrong {name}" for name, number in wrong.items() if number]


@dataclass(frozen=True)
class Windows(SoakQuery):
    """A count by window and key whose rows leave the state behind the watermark: deltas with many removed keys.

    Args:
        keys: number of keys in a window.
    """

    keys: int = 0

    @property
    def name(self) -> str:
        return "windows"

    def _frame(self, spark: SparkSession) -> DataFrame:
        stream = self._source(spark).withWatermark("time", f"{DELAY_SECONDS} seconds")
        window = sf.window("time", f"{WINDOW_SECONDS} seconds").alias("window")
        return stream.groupBy(window, (sf.col("value") % self.keys).alias("key")).agg(sf.count("*").alias("n"))

    def check(self, spark: SparkSession) -> list[str]:
        values = self._values()
        window = (values // self.rows + 1) // WINDOW_SECONDS
        # A window leaves with the batch whose watermark has reached its end.
        live = (window + 1) * WINDOW_SECONDS * 1000 > self._watermark_ms()
        pairs, count = np.unique(window[live] * self.keys + values[live] % self.keys, return_counts=True)
        state = self._state()
        start = pc.struct_field(_field(state, "key", 0), 0)
        first = _numbers(pc.divide(pc.cast(pc.cast(start, pa.timestamp("us")), pa.int64()), WINDOW_SECONDS * 1_000_000))
        found = first * self.keys + _numbers(_field(state, "key", 1))
        order = np.argsort(found)
        if not np.array_equal(found[order], pairs):
            return [f"windows: {len(found)} keys in the state, {len(pairs)} expected after batch {self.batches - 1}"]
        wrong = int(np.sum(_numbers(_field(state, "value", 0))[order] != count))
        return [f"windows: {wrong} keys have a wrong count"] if wrong else []

    def _watermark_ms(self) -> int:
        """Watermark of the last committed batch, from its entry in Spark's offset log."""
        entry = (self.location / "offsets" / str(self.batches - 1)).read_text().splitlines()
        return int(json.loads(entry[1])["batchWatermarkMs"])


@dataclass(frozen=True)
class DelayedJoin(SoakQuery):
    """A join in which each row meets its partner some batches later, written to files."""

    @property
    def name(self) -> str:
        return "join"

    @property
    def _mode(self) -> str:
        return "append"

    @property
    def _output(self) -> Path:
        return self.folder / self.name / "output"

    def _frame(self, spark: SparkSession) -> DataFrame:
        delay = f"{DELAY_SECONDS} seconds"
        left = self._source(spark).select(sf.col("value").alias("key"), sf.col("time").alias("asked"))
        lag = LAG_BATCHES * self.rows
        right = self._source(spark).select((sf.col("value") - lag).alias("id"), sf.col("time").alias("answered"))
        met = sf.expr(f"key = id AND answered >= asked AND answered <= asked + INTERVAL {2 * LAG_BATCHES} SECONDS")
        return left.withWatermark("asked", delay).join(right.withWatermark("answered", delay), met).select("key")

    def check(self, spark: SparkSession) -> list[str]:
        expected = max(0, (self.batches - LAG_BATCHES) * self.rows)
        output = spark.read.schema("key LONG").json(str(self._output))
        # An uncommitted batch may have written its files, and the sink's log then has them.
        output = output.where(sf.col("key") < expected)
        row = output.agg(sf.count("*"), sf.count_distinct("key"), sf.coalesce(sf.sum("key"), sf.lit(0))).head()
        assert row is not None
        want = (expected, expected, expected * (expected - 1) // 2)
        if tuple(row) == want:
            return []
        return [f"join: rows, different keys and their sum are {tuple(row)} instead of {want}"]


def _field(table: pa.Table, column: str, field: int) -> pa.ChunkedArray:
    return pc.struct_field(table[column], field)


def _numbers(values: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(pc.cast(values, pa.int64()).to_numpy())
