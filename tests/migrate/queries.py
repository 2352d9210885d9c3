"""Queries for imports and exports.

They need only PySpark and pandas: releases of Spark that spark-ckpt does not support run them, too. Those in Scala
also need the classes of `tests/spark/scala/TransferQueries.scala`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

PREFIX = "spark.sql.streaming.stateStore."
PROVIDER = PREFIX + "providerClass"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
OURS = "org.apache.spark.sql.ckpt.CheckpointStateStoreProvider"
CHANGELOG = PREFIX + "rocksdb.changelogCheckpointing.enabled"
FORMAT = PREFIX + "checkpointFormatVersion"
ROW_CHECKSUM = PREFIX + "rowChecksum.enabled"
CODEC = PREFIX + "compression.codec"
JOIN_FORMAT = "spark.sql.streaming.join.stateFormatVersion"

BEFORE, ALL = 4, 7
"""Files of input before an import, and in all."""

SCHEMA = "id long, user string, ts timestamp, v long"
_FIRST_MODIFIED = 1_700_000_000

Rows = Mapping[int, list[str]]

PROVIDERS: Mapping[str, Mapping[str, str]] = {
    "hdfs": {PROVIDER: HDFS},
    **{f"hdfs-{codec}": {PROVIDER: HDFS, CODEC: codec} for codec in ("lzf", "snappy", "zstd")},
    "hdfs-checksums": {PROVIDER: HDFS, ROW_CHECKSUM: "true"},
    "rocksdb": {PROVIDER: ROCKSDB, CHANGELOG: "false"},
    "changelog": {PROVIDER: ROCKSDB, CHANGELOG: "true"},
    "rocksdb-checksums": {PROVIDER: ROCKSDB, CHANGELOG: "false", ROW_CHECKSUM: "true"},
    **{
        f"rocksdb-{codec}": {PROVIDER: ROCKSDB, CHANGELOG: "false", PREFIX + "rocksdb.compression": codec}
        for codec in ("none", "snappy", "zstd")
    },
    **{
        f"changelog-{codec}": {PROVIDER: ROCKSDB, CHANGELOG: "true", CODEC: codec}
        for codec in ("lzf", "snappy", "zstd")
    },
    "checksums": {PROVIDER: ROCKSDB, CHANGELOG: "true", ROW_CHECKSUM: "true"},
    "avro": {PROVIDER: ROCKSDB, CHANGELOG: "true", PREFIX + "encodingFormat": "avro"},
    "ids": {PROVIDER: ROCKSDB, CHANGELOG: "true", FORMAT: "2"},
    "ids-snapshots": {PROVIDER: ROCKSDB, CHANGELOG: "false", FORMAT: "2"},
}
"""Settings of Spark's providers, by a short name."""


@dataclass(frozen=True)
class Query:
    """A query over two feeds.

    Args:
        plan: the query.
        mode: its output mode.
        conf: settings.
        since: oldest Spark minor that runs it.
        has_rows_later: whether the batches after the import have output.
        has_families: whether it needs a provider with column families.
        is_scala: whether it needs `TransferQueries` on the class path.
    """

    plan: Callable[[DataFrame, DataFrame], DataFrame]
    mode: str = "append"
    conf: Mapping[str, str] = field(default_factory=dict)
    since: str = "3.5"
    has_rows_later: bool = True
    has_families: bool = False
    is_scala: bool = False


def offer(folder: Path, files: int) -> None:
    """Makes the input files below a folder appear, up to a number; always with the same content and times."""
    rng = random.Random(42)
    for number in range(files):
        for side in ("left", "right"):
            lines = []
            for _ in range(40):
                second = 600 * number + rng.randrange(900)
                stamp = f"2024-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000Z"
                row = {"id": rng.randrange(90), "user": f"user-{rng.randrange(9)}", "ts": stamp, "v": rng.randrange(99)}
                if rng.random() < 0.05:
                    del row["user"]
                lines.append(json.dumps(row))
            path = folder / side / f"{number:03}.json"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                hidden = path.with_name(f".{path.name}")
                hidden.write_text("\n".join(lines))
                os.utime(hidden, (_FIRST_MODIFIED + number,) * 2)
                hidden.rename(path)


def run(spark: SparkSession, name: str, folder: Path, location: Path | str, conf: Mapping[str, str]) -> Rows:
    """Runs a query until it has read the files below a folder; returns the output rows of each batch."""
    query, rows = QUERIES[name], {}
    session = spark.newSession()
    for key, value in {**query.conf, **conf}.items():
        session.conf.set(key, value)

    def collect(batch: DataFrame, batch_id: int) -> None:
        rows[batch_id] = sorted(json.dumps(row.asDict(recursive=True), default=str) for row in batch.collect())

    sides = [
        session.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .json(str(folder / side))
        .withWatermark("ts", "5 minutes")
        for side in ("left", "right")
    ]
    stream = (
        query.plan(*sides)
        .writeStream.outputMode(query.mode)
        .foreachBatch(collect)
        .option("checkpointLocation", str(location))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert stream.awaitTermination(300)
    finally:
        stream.stop()
    return rows


def ours_like(provider: str) -> dict[str, str]:
    """Settings of a query with spark-ckpt that had a provider of Spark before."""
    before = PROVIDERS[provider]
    return {PROVIDER: OURS, **{key: before[key] for key in before if key.endswith(("FormatVersion", "encodingFormat"))}}


def state_format(provider: str) -> str:
    """The format for an export to a provider of Spark."""
    return "spark-hdfs" if PROVIDERS[provider][PROVIDER] == HDFS else "spark-rocksdb"


def stop_query(spark: SparkSession, folder: Path, name: str, provider: str) -> Path:
    """The location of a query that has read some files with a provider of Spark."""
    offer(folder, BEFORE)
    run(spark, name, folder, folder / "location", PROVIDERS[provider])
    return folder / "location"


def drop_commit(location: Path) -> None:
    """Makes the last committed batch one that has begun, as after a kill."""
    last = max((path for path in (location / "commits").iterdir() if path.name.isdecimal()), key=lambda p: int(p.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


def _count(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.groupBy("user").agg(f.count("*").alias("n"), f.sum("v").alias("s"), f.max("ts").alias("m"))


def _total(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.groupBy().agg(f.count("*").alias("n"), f.sum("v").alias("s"))


def _collated(left: DataFrame) -> DataFrame:
    return left.withColumn("user", f.collate("user", "UTF8_LCASE"))


def _count_by_collated(left: DataFrame, _: DataFrame) -> DataFrame:
    return _collated(left).groupBy("user").agg(f.count("*").alias("n"))


def _distinct_collated(left: DataFrame, _: DataFrame) -> DataFrame:
    return _collated(left).dropDuplicates(["user"]).select("user")


def _last_collated(left: DataFrame, _: DataFrame) -> DataFrame:
    return _collated(left).groupBy((f.col("id") % 9).alias("id")).agg(f.max("user").alias("user"))


def _windows(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.groupBy(f.window("ts", "7 minutes"), "id").agg(f.sum("v").alias("s"))


def _sessions(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.groupBy(f.session_window("ts", "2 minutes"), "id").agg(f.count("*").alias("n"))


def _distinct(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.dropDuplicates(["id"]).select("id")


def _within_watermark(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.dropDuplicatesWithinWatermark(["id"]).select("id", "ts")


def _limit(left: DataFrame, _: DataFrame) -> DataFrame:
    return left.select("id", "user").limit(200)


def _chain(left: DataFrame, _: DataFrame) -> DataFrame:
    per_id = left.groupBy(f.window("ts", "3 minutes"), "id").agg(f.count("*").alias("n"))
    return per_id.groupBy(f.window(f.window_time("window"), "12 minutes")).agg(f.sum("n").alias("n"))


def _several(left: DataFrame, right: DataFrame) -> DataFrame:
    near = "l.id = r.id and r.ts between l.ts - interval 6 minutes and l.ts + interval 6 minutes"
    joined = left.dropDuplicates(["id", "ts"]).alias("l").join(right.alias("r"), f.expr(near))
    return joined.groupBy(f.window("l.ts", "3 minutes")).agg(f.count("*").alias("n"), f.sum("r.v").alias("s"))


def _join(how: str) -> Callable[[DataFrame, DataFrame], DataFrame]:
    def plan(left: DataFrame, right: DataFrame) -> DataFrame:
        near = "l.id = r.id and r.ts between l.ts - interval 6 minutes and l.ts + interval 6 minutes"
        return left.alias("l").join(right.alias("r"), f.expr(near), how).select("l.id", "l.ts", "l.v", "r.ts", "r.v")

    return lambda left, right: plan(left, right).toDF("id", "left_ts", "left_v", "right_ts", "right_v")


def _pandas_state(left: DataFrame, _: DataFrame) -> DataFrame:
    from pyspark.sql.streaming.state import GroupStateTimeout

    def count(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        seen = sum(map(len, frames))
        if state.hasTimedOut:
            (n,) = state.get
            state.remove()
        else:
            n = (state.get[0] if state.exists else 0) + seen
            state.update((n,))
            state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + 900_000)
        yield pd.DataFrame({"id": [key[0]], "n": [n], "timed_out": [seen == 0]})

    return left.groupBy("id").applyInPandasWithState(
        count, "id long, n long, timed_out boolean", "n long", "append", GroupStateTimeout.EventTimeTimeout
    )


def _processor(ttl_ms: int | None) -> Any:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Remembering(StatefulProcessor):
        """Keeps a value, a list and a map for each key, and a timer that clears them."""

        def init(self, handle: Any) -> None:
            self.handle = handle
            self.count = handle.getValueState("count", "n long", ttl_ms)
            self.seen = handle.getListState("seen", "v long, n long", ttl_ms)
            self.users = handle.getMapState("users", "user string", "n long", ttl_ms)

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
            found = list(pd.concat(list(rows)).itertuples())
            n = (self.count.get()[0] if self.count.exists() else 0) + len(found)
            self.count.update((n,))
            for row in found:
                self.seen.appendValue((int(row.v), n))
                user = (row.user if isinstance(row.user, str) else "none",)
                known = self.users.getValue(user)[0] if self.users.containsKey(user) else 0
                self.users.updateValue(user, (known + 1,))
            if ttl_ms is None:
                for timer in self.timers():
                    self.handle.deleteTimer(timer)
                self.handle.registerTimer(timers.getCurrentWatermarkInMs() + 1_200_000)
            elif n == len(found):
                self.handle.registerTimer(4_000_000_000_000 + key[0])
            yield self.row(key, n, False)

        def handleExpiredTimer(self, key: Any, timers: Any, expired: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
            row = self.row(key, self.count.get()[0] if self.count.exists() else 0, True)
            for state in (self.count, self.seen, self.users):
                state.clear()
            yield row

        def timers(self) -> list[int]:
            return sorted(timer if isinstance(timer, int) else timer[0] for timer in self.handle.listTimers())

        def row(self, key: Any, n: int, expired: bool) -> pd.DataFrame:
            seen = [list(value) for value in self.seen.get()]
            users = sorted((user[0], known[0]) for user, known in self.users.iterator())
            state = json.dumps([seen, users, self.timers()])
            return pd.DataFrame({"id": [key[0]], "n": [n], "expired": [expired], "state": [state]})

        def close(self) -> None:
            pass

    return Remembering()


def _processing(ttl_ms: int | None) -> Callable[[DataFrame, DataFrame], DataFrame]:
    def plan(left: DataFrame, _: DataFrame) -> DataFrame:
        keyed = left.select((f.col("id") % 12).alias("id"), "user", "ts", "v").groupBy("id")
        return keyed.transformWithStateInPandas(
            statefulProcessor=_processor(ttl_ms),
            outputStructType="id long, n long, expired boolean, state string",
            outputMode="Append",
            timeMode="EventTime" if ttl_ms is None else "ProcessingTime",
        )

    return plan


def _scala(method: str, *arguments: object) -> Callable[[DataFrame, DataFrame], DataFrame]:
    def plan(left: DataFrame, _: DataFrame) -> DataFrame:
        spark: Any = left.sparkSession
        return DataFrame(getattr(spark._jvm.TransferQueries, method)(left._jdf, *arguments), spark)

    return plan


def _evolving(step: int, is_avro: bool) -> Query:
    return Query(_scala("evolving", step, is_avro), since="4.0", has_families=True, is_scala=True)


_NO_EMPTY_BATCHES = {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
_V4 = {JOIN_FORMAT: "4", "spark.sql.streaming.join.stateFormatV4.enabled": "true"}

QUERIES: Mapping[str, Query] = {
    "count": Query(_count, "update"),
    "total": Query(_total, "update"),
    "windows": Query(_windows),
    "count-by-collated": Query(_count_by_collated, "update", since="4.0"),
    "distinct-collated": Query(_distinct_collated, since="4.0"),
    "last-collated": Query(_last_collated, "update", since="4.0"),
    "sessions": Query(_sessions),
    "distinct": Query(_distinct),
    "within-watermark": Query(_within_watermark),
    "limit": Query(_limit, has_rows_later=False),
    "chain": Query(_chain),
    "several": Query(_several),
    "inner-join-1": Query(_join("inner"), conf={JOIN_FORMAT: "1"}),
    "inner-join": Query(_join("inner")),
    "outer-join": Query(_join("full_outer")),
    "outer-join-3": Query(_join("full_outer"), conf={JOIN_FORMAT: "3"}, since="4.1", has_families=True),
    "outer-join-4": Query(_join("full_outer"), conf=_V4, since="4.2", has_families=True),
    "pandas-state": Query(_pandas_state),
    "processor": Query(_processing(None), since="4.0", has_families=True),
    "processor-ttl": Query(_processing(86_400_000 * 3650), conf=_NO_EMPTY_BATCHES, since="4.0", has_families=True),
    "scala-processor": Query(_scala("remembering", False), since="4.0", has_families=True, is_scala=True),
    "scala-processor-ttl": Query(
        _scala("remembering", True), conf=_NO_EMPTY_BATCHES, since="4.0", has_families=True, is_scala=True
    ),
    **{f"evolving-{step}": _evolving(step, False) for step in (1, 2, 3)},
    **{f"evolving-avro-{step}": _evolving(step, True) for step in (1, 2, 3)},
    "flat-map-groups": Query(_scala("flatMapGroups"), is_scala=True),
    "map-groups": Query(_scala("mapGroups"), "update", conf=_NO_EMPTY_BATCHES, is_scala=True),
}
