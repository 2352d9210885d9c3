"""Driver program of the rollback tests: the running count of `running_count.py`, which can stand still.

With `--stop-in`, it waits in the sink of a batch until the gate is open: all tasks have acknowledged, and Spark has not
committed the batch. With `--for-ever`, it waits for more input at the end instead of ending.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from tests.spark.jobs.running_count import FAILED, plan, session, waiting
from tests.support.events import SCHEMA
from tests.support.feeds import Feed
from tests.support.provider import PROVIDERS
from tests.support.sinks import BatchLog


def main(arguments: list[str]) -> int:
    """Runs the query, and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--provider", choices=list(PROVIDERS), required=True)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--gate", type=Path)
    parser.add_argument("--stop-in", type=int, help="batch whose sink waits until the file of the gate exists")
    parser.add_argument("--for-ever", choices=["yes", "no"], default="no")
    options = parser.parse_args(arguments)
    spark = session(options)
    sink = BatchLog(options.folder / "out", "update")

    def write(frame: DataFrame, batch_id: int) -> None:
        sink.write(frame, batch_id)
        while batch_id == options.stop_in and not options.gate.exists():
            waiting(options.gate).touch()
            time.sleep(0.02)

    counts = plan(Feed(options.folder / "feeds" / "events", SCHEMA).stream(spark), None)
    writer = counts.writeStream.outputMode("update").foreachBatch(write)
    writer = writer.option("checkpointLocation", str(options.folder / "checkpoint"))
    writer = (
        writer.trigger(processingTime="0 seconds") if options.for_ever == "yes" else writer.trigger(availableNow=True)
    )
    try:
        writer.start().awaitTermination()
    except StreamingQueryException as error:
        print(f"FAILED: {error}", flush=True)
        return FAILED
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
