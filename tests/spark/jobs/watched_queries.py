"""Driver program of the UI's tests: a query that runs until a file appears, and one whose third batch fails.

It writes the address of Spark's UI to the file `ui`, or an empty one without a UI.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.provider import CKPT
from tests.support.session import open_session, write_ui_address
from tests.support.waiting import eventually

STEADY = """<script>alert("steady")</script>&'"""
FAILING = "failing"


def main(arguments: list[str]) -> int:
    """Runs the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(arguments)
    folder: Path = options.folder
    conf = dict(pair.split("=", 1) for pair in options.conf)
    spark = open_session(CKPT, folder, conf=conf)
    steady = start(_counted(spark), folder, STEADY, "200 milliseconds")
    failing = start(failing_at(spark, 25), folder, FAILING, "0 seconds")
    try:
        failing.awaitTermination()
    except StreamingQueryException:
        write_ui_address(spark, folder)
    eventually((folder / "stop").exists)
    steady.stop()
    spark.stop()
    return 0


def _counted(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    return rows.groupBy((sf.col("value") % 7).alias("key")).agg(sf.count("*").alias("n"), sf.max("value").alias("most"))


def failing_at(spark: SparkSession, value: int) -> DataFrame:
    """Ten rows a batch, without duplicates. The task of one value fails in the middle of its rows.

    An aggregation would not do: it takes all rows before it gives any, so its state is committed before the failure.
    """
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load().dropDuplicates(["value"])
    failure = sf.raise_error(sf.lit("too many")).cast("bigint")
    return rows.withColumn("value", sf.when(sf.col("value") == value, failure).otherwise(sf.col("value")))


def start(frame: DataFrame, folder: Path, name: str, interval: str) -> StreamingQuery:
    """Starts a query, with its location in a folder of its name."""
    location = folder / ("steady" if name == STEADY else name)
    writer = frame.writeStream.format("noop").outputMode("update").queryName(name)
    return writer.option("checkpointLocation", str(location)).trigger(processingTime=interval).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
