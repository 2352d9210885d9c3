"""Driver program of the restore tests: a running count by key over the files of a folder, after de-duplication.

The rows of each batch go to `out/`, the input comes from `feeds/events`, the checkpoint location is `checkpoint` unless
another is given, all in the folder given. It ends when all input is processed; with an error it prints the message and
ends with status 3.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.support.events import SCHEMA
from tests.support.feeds import Feed
from tests.support.provider import PROVIDERS
from tests.support.session import open_session
from tests.support.sinks import BatchLog

GATE = "gate"
"""Key of rows that wait until the gate is open; until then, only the first operator has acknowledged."""

SLOW = "slow"
"""Key of rows that take six seconds each until the gate is open."""

FAILED = 3


def options_of(description: str | None) -> argparse.ArgumentParser:
    """Command-line options of each program with this query."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--provider", choices=list(PROVIDERS), required=True)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """Command-line options of this program."""
    parser = options_of(__doc__)
    parser.add_argument("--location", help="checkpoint location: a path or URL")
    parser.add_argument("--gate", type=Path, help="hold the task with the key 'gate' until this file exists")
    return parser.parse_args(arguments)


def waiting(gate: Path) -> Path:
    """File that exists once a row waits at the gate."""
    return gate.with_suffix(".waiting")


def passes(key: Column, gate: Path) -> Column:
    """True for every key; its task waits at rows of the gate until the gate's file exists, and is slow at slow rows."""

    mark = waiting(gate)

    def wait(value: str) -> bool:
        while value == GATE and not gate.exists():
            mark.touch()
            time.sleep(0.02)
        if value == SLOW and not gate.exists():
            time.sleep(6.0)
        return True

    return sf.udf(wait, "boolean")(key)


def plan(frame: DataFrame, gate: Path | None) -> DataFrame:
    """Two stateful operators, de-duplication and figures by key, with the gate between them."""
    single = frame.dropDuplicates(["ts", "key", "value"])
    if gate is not None:
        single = single.where(passes(sf.col("key"), gate))  # no part of the key: the query means the same without it
    return single.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def session(options: argparse.Namespace, **conf: str) -> SparkSession:
    """Spark session with the command-line options and the program's own settings."""
    conf |= dict(entry.split("=", 1) for entry in options.conf)
    conf["spark.sql.shuffle.partitions"] = str(options.partitions)
    return open_session(PROVIDERS[options.provider], options.folder, master=options.master, conf=conf)


def run(spark: SparkSession, folder: Path, plan: Callable[[DataFrame], DataFrame], location: str | None = None) -> int:
    """Runs the query to the end of its input, stops Spark, and returns the exit status."""
    frame = plan(Feed(folder / "feeds" / "events", SCHEMA).stream(spark))
    writer = BatchLog(folder / "out", "update").attach(frame.writeStream)
    writer = writer.option("checkpointLocation", location or str(folder / "checkpoint")).trigger(availableNow=True)
    return run_to_end(spark, writer)


def run_to_end(spark: SparkSession, writer: DataStreamWriter) -> int:
    """Runs a query to its end, stops Spark, and returns the exit status."""
    try:
        writer.start().awaitTermination()
    except StreamingQueryException as error:
        print(f"FAILED: {error}", flush=True)
        return FAILED
    finally:
        spark.stop()
    print("FINISHED", flush=True)
    return 0


def main(arguments: list[str]) -> int:
    """Runs the query, with the gate if one is given."""
    options = parse(arguments)
    return run(session(options), options.folder, lambda frame: plan(frame, options.gate), options.location)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
