"""Driver program: the main job's queries on Kafka, all in one driver, until it is told to finish.

The input are two topics, `left` and `right`, of the events in `tests/support/events.py`. The results go to topics,
through Spark's Kafka sink or through `foreachBatch`, and to a Delta table in the folder given; the checkpoint location
of each query is `checkpoints/<query>` there. When the file `finish` exists in the folder, the program processes all
input and ends. If a query fails, it prints the error and ends with status 3.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark import kafka_queries
from tests.support.events import SCHEMA
from tests.support.provider import PROVIDERS
from tests.support.session import open_session
from tests.support.topics import Topic

FAILED = 3
FINISH = "finish"
QUERIES = ("windows", "pairs", "unique", "sums")


def parse(arguments: list[str]) -> argparse.Namespace:
    """Command-line options of this program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--provider", choices=list(PROVIDERS), required=True)
    parser.add_argument("--servers", required=True, help="address of the broker")
    parser.add_argument("--prefix", required=True, help="topics are PREFIX-left, PREFIX-windows, ...")
    parser.add_argument("--records-per-batch", type=int, default=150)
    return parser.parse_args(arguments)


def start(spark: SparkSession, options: argparse.Namespace) -> list[StreamingQuery]:
    """Starts all queries."""

    def events(name: str) -> DataFrame:
        topic = Topic(options.servers, SCHEMA, f"{options.prefix}-{name}")
        return topic.stream(spark, maxOffsetsPerTrigger=options.records_per_batch)

    def run(name: str, writer: DataStreamWriter) -> StreamingQuery:
        location = options.folder / "checkpoints" / name
        return writer.queryName(name).option("checkpointLocation", str(location)).start()

    def to_topic(frame: DataFrame, mode: str, name: str) -> DataStreamWriter:
        writer = as_records(frame).writeStream.outputMode(mode).format("kafka")
        return writer.option("kafka.bootstrap.servers", options.servers).option("topic", f"{options.prefix}-{name}")

    def write_unique(frame: DataFrame, batch_id: int) -> None:
        """Writes the batch with its id: readers drop what a rerun has written again."""
        records = as_records(frame.withColumn("batch", sf.lit(batch_id)))
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", options.servers)
        writer.option("topic", f"{options.prefix}-unique").save()

    left, right = events("left"), events("right")
    pairs = kafka_queries.pairs(left, right).writeStream.format("delta").outputMode("append")
    return [
        run("windows", to_topic(kafka_queries.windows(left), "append", "windows")),
        run("pairs", pairs.option("path", str(options.folder / "pairs"))),
        run("unique", kafka_queries.unique(left).writeStream.foreachBatch(write_unique)),
        run("sums", to_topic(kafka_queries.sums(right), "update", "sums")),
    ]


def as_records(frame: DataFrame) -> DataFrame:
    """The rows as records: the column `key` as their key, and all columns as a JSON object."""
    return frame.select("key", sf.to_json(sf.struct("*")).alias("value"))


def main(arguments: list[str]) -> int:
    """Runs the queries until told to finish."""
    options = parse(arguments)
    spark = open_session(PROVIDERS[options.provider], options.folder, delta=True, kafka=True)
    try:
        queries = start(spark, options)
        print("STARTED", flush=True)
        while not (options.folder / FINISH).exists():
            spark.streams.awaitAnyTermination(1)  # raises the error of a query that has failed
        for query in queries:
            query.processAllAvailable()
            query.stop()
    except StreamingQueryException as error:
        print(f"FAILED: {error}", flush=True)
        return FAILED
    finally:
        spark.stop()
    print("FINISHED", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
