"""Driver program of the browser's test: queries with what the UI's pages have to show.

- `wide` has 200 partitions and one batch;
- the one with the hostile name has two operators and a batch every 500 ms: 200 newer checkpoints would displace the
  subtasks of `wide`;
- `failing` fails in its third batch;
- `waiting` has a second batch in which one of three subtasks never acknowledges.

It writes the address of Spark's UI to the file `ui` once the last one waits, and ends when the file `stop` appears.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.spark.jobs.watched_queries import FAILING, STEADY, failing_at, start
from tests.support.provider import CKPT
from tests.support.session import open_session, write_ui_address
from tests.support.waiting import eventually

WIDE = "wide"
WAITING = "waiting"
PARTITIONS = 200
# Spark triggers at multiples of the interval since 1970: with one of an hour, a second batch may follow at once.
ONE_BATCH = "100000 days"


def main(arguments: list[str]) -> int:
    """Runs the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    spark = open_session(CKPT, folder, conf=dict(pair.split("=", 1) for pair in options.conf))
    spark.conf.set("spark.sql.shuffle.partitions", str(PARTITIONS))
    wide = start(_grouped(spark, 1000), folder, WIDE, ONE_BATCH)
    eventually(lambda: wide.lastProgress is not None)
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    steady = start(_without_duplicates(spark), folder, STEADY, "500 milliseconds")
    failing = start(failing_at(spark, 25), folder, FAILING, "0 seconds")
    with suppress(StreamingQueryException):
        failing.awaitTermination()
    waiting = start(_waiting(spark, 13), folder, WAITING, "0 seconds")
    eventually(lambda: waiting.lastProgress is not None)
    write_ui_address(spark, folder)
    eventually((folder / "stop").exists)
    for query in (waiting, steady, wide):
        query.stop()
    spark.stop()
    return 0


def _grouped(spark: SparkSession, rows: int) -> DataFrame:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()
    return stream.groupBy("value").count()


def _without_duplicates(spark: SparkSession) -> DataFrame:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    return stream.dropDuplicates(["value"]).groupBy((sf.col("value") % 7).alias("key")).count()


def _waiting(spark: SparkSession, value: int) -> DataFrame:
    """Rows without duplicates. The task of one value stays in the middle of its rows until the query is stopped."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().dropDuplicates(["value"])
    forever = sf.expr("cast(reflect('java.lang.Thread', 'sleep', 100000000L) as bigint)")
    return stream.withColumn("value", sf.when(sf.col("value") == value, forever).otherwise(sf.col("value")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
