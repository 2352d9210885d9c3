"""Driver program of one run: a query with state from topic to topic, in real-time mode.

`python -m benchmarks.real_time.job ORDER`, where ORDER is the JSON of an `Order`. The first batch is a micro-batch
that reads the rows already in the topic: with a setting of the provider, Spark starts no query in real-time mode, but
it continues a location with the provider that began it. The file `ready` marks the start of real-time mode, and the
program ends after the file `finish` exists, when the rows so far are committed.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.demo.session import KAFKA_JARS, jars_in
from benchmarks.stores.providers import OURS, PROVIDERS
from benchmarks.stores.runner import CONF
from spark_ckpt import configure
from spark_ckpt.config import EXPERIMENTAL, PROVIDER_KEY

READY, FINISH, PROGRESS = "ready", "finish", "progress.json"
"""Files in the folder of the run."""

SCHEMA = "key long, number long, sent long"
"""Columns of the input: key, number of the row, and time of sending in ms since 1970."""


@dataclass(frozen=True)
class Order:
    """Instructions for one run.

    Args:
        provider: name of the provider.
        query: `count` or `dedup`.
        servers: address of the broker.
        source: topic to read.
        sink: topic to write.
        folder: folder of the run.
        partitions: partitions of the input and of the state.
        interval_ms: length of a batch.
        heap: heap size of the driver in Java's notation.
    """

    provider: str
    query: str
    servers: str
    source: str
    sink: str
    folder: str
    partitions: int
    interval_ms: int
    heap: str


def count(rows: DataFrame) -> DataFrame:
    """Rows of each key so far. The time of sending is that of the newest row."""
    newest = F.max("number").alias("number"), F.max("sent").alias("sent")
    return rows.groupBy("key").agg(F.count("*").alias("rows"), *newest)


def dedup(rows: DataFrame) -> DataFrame:
    """Each row once, with the time of its first sending."""
    return rows.dropDuplicates(["key", "number"]).withColumn("rows", F.lit(1))


QUERIES = {"count": count, "dedup": dedup}


class Job:
    """The query of a run."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self._spark = self._open()

    def run(self) -> None:
        """Runs the query until the file `finish` exists, then writes Spark's progress reports.

        Raises:
            StreamingQueryException: the query has failed.
        """
        self._start(self._spark, availableNow=True).awaitTermination()
        session = self._spark.newSession()
        session.conf.unset(PROVIDER_KEY)
        query = self._start(session, realTime=f"{self._order.interval_ms} milliseconds")
        (self._folder / READY).touch()
        while query.isActive and not (self._folder / FINISH).exists():
            time.sleep(0.1)
        self._await_commit(query)
        reports = [json.loads(progress.json) for progress in query.recentProgress]
        query.stop()
        if (error := query.exception()) is not None:
            raise error
        (self._folder / PROGRESS).write_text(json.dumps(reports), encoding="utf-8")
        self._spark.stop()

    @staticmethod
    def _await_commit(query: StreamingQuery) -> None:
        """Waits for two more reports: the first may be of a batch that ended before the newest rows."""
        reports = len(query.recentProgress)
        while query.isActive and len(query.recentProgress) < reports + 2:
            time.sleep(0.1)

    def _open(self) -> SparkSession:
        # The tasks of both stages of a batch in real-time mode run at once.
        builder = SparkSession.builder.master(f"local[{2 * self._order.partitions}]")
        settings = {
            **CONF,
            "spark.driver.memory": self._order.heap,
            "spark.jars": ",".join(map(str, jars_in(KAFKA_JARS))),
            "spark.local.dir": str(self._folder),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.sql.shuffle.partitions": str(self._order.partitions),
            "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
            "spark.sql.streaming.realTimeMode.minBatchDuration": "100",
            **PROVIDERS[self._order.provider].conf(),
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        if self._order.provider == OURS.name:
            builder = configure(builder, real_time_mode=EXPERIMENTAL)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("WARN")
        return spark

    def _start(self, spark: SparkSession, **trigger: object) -> StreamingQuery:
        servers = self._order.servers
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
        records = reader.option("subscribe", self._order.source).option("startingOffsets", "earliest").load()
        rows = records.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")
        results = QUERIES[self._order.query](rows).select(F.to_json(F.struct("*")).alias("value"))
        writer = results.writeStream.format("kafka").outputMode("update").option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", self._order.sink)
        writer = writer.option("checkpointLocation", (self._folder / "checkpoint").as_uri())
        return writer.trigger(**trigger).start()  # type: ignore[call-overload, no-any-return]


if __name__ == "__main__":
    Job(Order(**json.loads(sys.argv[1]))).run()
