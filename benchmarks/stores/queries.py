"""Queries of the workloads over folders of input."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.stores.data import HORIZON_SECONDS

_TIMED = "key long, time timestamp"


def build(spark: SparkSession, query: str, feed: Path) -> DataFrame:
    """Streaming DataFrame of a query: `count`, `totals`, `join`, `dedup` or `session`."""
    return {"count": _count, "totals": _totals, "join": _join, "dedup": _dedup, "session": _session}[query](spark, feed)


OUTPUT_MODES = {"count": "update", "totals": "update", "join": "append", "dedup": "append", "session": "append"}


def _count(spark: SparkSession, feed: Path) -> DataFrame:
    return _files(spark, feed / "events", "key long").groupBy("key").count()


def _totals(spark: SparkSession, feed: Path) -> DataFrame:
    """Keys of 16 and values of 40 bytes in the state."""
    events = _files(spark, feed / "events", "key long").groupBy("key")
    return events.agg(F.count("key"), F.sum("key"), F.min("key"), F.max("key"))


def _join(spark: SparkSession, feed: Path) -> DataFrame:
    left = _files(spark, feed / "left", _TIMED).withWatermark("time", "0 seconds").alias("l")
    right = _files(spark, feed / "right", _TIMED).withWatermark("time", "0 seconds").alias("r")
    near = f"interval {HORIZON_SECONDS} seconds"
    same = F.expr(f"l.key = r.key and l.time >= r.time - {near} and l.time <= r.time + {near}")
    return left.join(right, same)


def _dedup(spark: SparkSession, feed: Path) -> DataFrame:
    # A key expires once the watermark, itself late by the delay, passes its event time plus the delay: one horizon.
    events = _files(spark, feed / "events", _TIMED).withWatermark("time", f"{HORIZON_SECONDS // 2} seconds")
    return events.dropDuplicatesWithinWatermark(["key"])


def _session(spark: SparkSession, feed: Path) -> DataFrame:
    events = _files(spark, feed / "events", _TIMED).withWatermark("time", "0 seconds")
    return events.groupBy("key", F.session_window("time", f"{HORIZON_SECONDS} seconds")).count()


def _files(spark: SparkSession, folder: Path, schema: str) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder.as_uri())
