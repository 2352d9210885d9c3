"""Driver program: the main job's queries on Kafka, all in one driver, until it is told to finish.

The input are two topics, `left` and `right`, of the events in `tests/support/events.py`. The results go to topics,
through Spark's Kafka sink or through `foreachBatch`, and to a Delta table in the folder given; the checkpoint location
of each query is `checkpoints/<query>` there. When the file `finish` exists in the folder, the program processes all
input and ends. If a query fails, it prints the error and ends with status 3.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark import kafka_queries
from tests.support.events import SCHEMA
from tests.support.provider import PROVIDERS
from tests.support.runner import WORKER_GIVEN_UP
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


def starts(spark: SparkSession, options: argparse.Namespace) -> dict[str, Callable[[], StreamingQuery]]:
    """Functions that start the queries, by name; each call makes a new plan."""

    def events(name: str) -> DataFrame:
        topic = Topic(options.servers, SCHEMA, f"{options.prefix}-{name}")
        return topic.stream(spark, maxOffsetsPerTrigger=options.records_per_batch)

    def run(name: str, writer: DataStreamWriter) -> StreamingQuery:
        location = options.folder / "checkpoints" / name
        return writer.queryName(name).option("checkpointLocation", str(location)).start()

    def to_topic(name: str, frame: DataFrame, mode: str) -> StreamingQuery:
        writer = as_records(frame).writeStream.outputMode(mode).format("kafka")
        writer = writer.option("kafka.bootstrap.servers", options.servers)
        return run(name, writer.option("topic", f"{options.prefix}-{name}"))

    def to_table(name: str, frame: DataFrame) -> StreamingQuery:
        writer = frame.writeStream.format("delta").outputMode("append")
        return run(name, writer.option("path", str(options.folder / name)))

    def write_unique(frame: DataFrame, batch_id: int) -> None:
        """Writes the batch with its id: readers drop what a rerun has written again."""
        records = as_records(frame.withColumn("batch", sf.lit(batch_id)))
        writer = records.write.format("kafka").option("kafka.bootstrap.servers", options.servers)
        writer.option("topic", f"{options.prefix}-unique").save()

    return {
        "windows": lambda: to_topic("windows", kafka_queries.windows(events("left")), "append"),
        "pairs": lambda: to_table("pairs", kafka_queries.pairs(events("left"), events("right"))),
        "unique": lambda: run("unique", kafka_queries.unique(events("left")).writeStream.foreachBatch(write_unique)),
        "sums": lambda: to_topic("sums", kafka_queries.sums(events("right")), "update"),
    }


def as_records(frame: DataFrame) -> DataFrame:
    """The rows as records: the column `key` as their key, and all columns as a JSON object."""
    return frame.select("key", sf.to_json(sf.struct("*")).alias("value"))


def run_until(finish: Path, queries: dict[str, Callable[[], StreamingQuery]]) -> None:
    """Runs the queries until the file exists, and then to the end of their input.

    Starts a query again if Spark gives up on its Python worker, which happens on a busy machine.

    Raises:
        StreamingQueryException: a query failed with another error.
    """
    running = {name: start() for name, start in queries.items()}
    while True:
        finishing, restarted = finish.exists(), False
        for name, query in running.items():
            if has_lost_worker(query, finishing=finishing):
                print(f"RESTARTED {name}: {WORKER_GIVEN_UP}", flush=True)
                running[name], restarted = queries[name](), True
        if finishing and not restarted:
            break
        time.sleep(0.1)
    for query in running.values():
        query.stop()


def has_lost_worker(query: StreamingQuery, *, finishing: bool) -> bool:
    """True if Spark has given up on a Python worker of the query; waits for the end of its input if `finishing`.

    Raises:
        StreamingQueryException: the query failed with another error.
    """
    try:
        if finishing:
            query.processAllAvailable()
        elif (error := query.exception()) is not None:
            raise error
    except StreamingQueryException as error:
        if WORKER_GIVEN_UP not in str(error):
            raise
        return True
    return False


def main(arguments: list[str]) -> int:
    """Runs the queries until told to finish."""
    options = parse(arguments)
    spark = open_session(PROVIDERS[options.provider], options.folder, delta=True, kafka=True)
    try:
        run_until(options.folder / FINISH, starts(spark, options))
    except StreamingQueryException as error:
        print(f"FAILED: {error}", flush=True)
        return FAILED
    finally:
        spark.stop()
    print("FINISHED", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
