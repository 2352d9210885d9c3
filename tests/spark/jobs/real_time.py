"""Driver program: queries with state from topic to topic, in real-time mode or in micro-batches.

Each query has a folder NAME below --folder, with its checkpoint location and its log of runs, and two topics,
PREFIX-NAME and PREFIX-NAME-out. In micro-batches the program ends when all input is processed. In real-time mode a
query that fails is started again, and the program ends when the file `finish` exists. With --around, new locations
begin with micro-batches, and all queries end with them.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.provider import CKPT_PREFIX, PROVIDER_KEY, PROVIDERS
from tests.support.session import open_session
from tests.support.topics import Topic

SCHEMA = "key string, value long"
FINISH = "finish"
FAILURES = "failures"
"""File with one line for each failed run of a query: the name of the error."""

ALLOWLIST_KEY = "spark.sql.streaming.realTimeMode.allowlistCheck"

PARTITIONS = 2
"""Partitions of the topics and of the state."""

MAX_FAILURES = 5

_ERROR = re.compile(r"\[([A-Z]\w+Error)\]")


def counts(events: DataFrame) -> DataFrame:
    """Number and sum of the values of each key."""
    return events.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def unique(events: DataFrame) -> DataFrame:
    """Each row once."""
    return events.dropDuplicates(["key", "value"])


def settled(events: DataFrame) -> DataFrame:
    """Rows of each key, again some time later, computed by `SettledCounts.scala`."""
    spark = events.sparkSession
    result = spark._jvm.SettledCounts.of(events._jdf)  # type: ignore[union-attr]
    return DataFrame(result, spark).toDF("key", "n", "settled")


PLANS = {"counts": counts, "unique": unique, "settled": settled}
"""Plans by the first part of a query's name, up to a hyphen."""


def parse(arguments: list[str]) -> argparse.Namespace:
    """Command-line options of this program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--provider", choices=list(PROVIDERS), required=True)
    parser.add_argument("--servers", required=True, help="address of the broker")
    parser.add_argument("--prefix", required=True, help="beginning of the names of the topics")
    parser.add_argument("--queries", required=True, help="names, separated by commas")
    parser.add_argument("--real-time", help="length of the batches, such as '1 second'; without it, micro-batches")
    parser.add_argument("--around", choices=("yes", "no"), default="no", help="micro-batches before and after")
    parser.add_argument("--python", help="the side process's Python")
    parser.add_argument("--jar", help="jar with the Scala classes of a query")
    return parser.parse_args(arguments)


def session(options: argparse.Namespace) -> SparkSession:
    """Session of queries in micro-batches."""
    queries = len(options.queries.split(","))
    conf = {
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.sql.streaming.realTimeMode.minBatchDuration": "100",
        CKPT_PREFIX + "realTimeMode": "experimental",
        **({CKPT_PREFIX + "python": options.python} if options.python else {}),
        **({"spark.driver.extraClassPath": options.jar} if options.jar else {}),
    }
    master = f"local[{2 * PARTITIONS * queries}]"  # the tasks of all stages run at once
    return open_session(PROVIDERS[options.provider], options.folder, master=master, conf=conf, kafka=True)


def real_time_session(spark: SparkSession, names: list[str]) -> SparkSession:
    """Session of queries in real-time mode. Spark refuses one that sets our provider, even in the defaults."""
    session = spark.newSession()
    session.conf.unset(PROVIDER_KEY)
    if any(name.startswith("settled") for name in names):
        session.conf.set(ALLOWLIST_KEY, "false")
    return session


def start(spark: SparkSession, options: argparse.Namespace, name: str, *, real_time: bool) -> StreamingQuery:
    """Starts a query."""
    topic = Topic(options.servers, SCHEMA, f"{options.prefix}-{name}")
    limits = {} if real_time else {"maxOffsetsPerTrigger": 50}
    frame = PLANS[name.partition("-")[0]](topic.stream(spark, **limits))
    records = frame.select(sf.col("key").cast("string"), sf.to_json(sf.struct("*")).alias("value"))
    writer = records.writeStream.format("kafka").outputMode("update").queryName(name)
    writer = writer.option("kafka.bootstrap.servers", options.servers).option("topic", f"{topic.name}-out")
    writer = writer.option("checkpointLocation", str(options.folder / name / "checkpoint"))
    if real_time:
        return writer.trigger(realTime=options.real_time).start()  # type: ignore[call-overload,no-any-return]
    # A query with timers in processing time never comes to the end of what is available.
    return (writer.trigger(once=True) if name.startswith("settled") else writer.trigger(availableNow=True)).start()


def failed(folder: Path, error: StreamingQueryException) -> int:
    """Notes a failed run; returns the number of failures so far."""
    found = _ERROR.search(str(error))
    with (folder / FAILURES).open("a") as file:
        file.write((found[1] if found else str(error).splitlines()[0]) + "\n")
    return len((folder / FAILURES).read_text().splitlines())


def run_micro_batches(spark: SparkSession, options: argparse.Namespace, names: list[str]) -> None:
    """Processes all input of these queries."""
    for query in [start(spark, options, name, real_time=False) for name in names]:
        query.awaitTermination()


def run_in_real_time(spark: SparkSession, options: argparse.Namespace, names: list[str]) -> None:
    """Runs these queries until the file `finish` exists."""
    queries = {name: start(spark, options, name, real_time=True) for name in names}
    while not (options.folder / FINISH).exists():
        for name, query in queries.items():
            if not query.isActive and (error := query.exception()) is not None:
                if failed(options.folder / name, error) > MAX_FAILURES:
                    raise error
                queries[name] = start(spark, options, name, real_time=True)
        time.sleep(0.1)
    for query in queries.values():
        query.stop()
        if (error := query.exception()) is not None:
            raise error


def main(arguments: list[str]) -> None:
    """Runs the queries to the end."""
    options = parse(arguments)
    spark = session(options)
    names = options.queries.split(",")
    for name in names:
        (options.folder / name).mkdir(exist_ok=True)
    around = options.around == "yes"
    if options.real_time:
        new = [name for name in names if not (options.folder / name / "checkpoint" / "commits" / "0").exists()]
        if around:
            run_micro_batches(spark, options, new)
        run_in_real_time(real_time_session(spark, names), options, names)
    if around or not options.real_time:
        run_micro_batches(spark, options, names)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
