"""Driver program of the rollback tests: the running count of `running_count.py`, which can stand still.

With `--stop-in`, it waits in the sink of a batch until the gate is open: all tasks have acknowledged, and Spark has not
committed the batch. With `--for-ever`, it waits for more input at the end instead of ending.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame

from tests.spark.jobs.running_count import options_of, plan, run_to_end, session, waiting
from tests.support.events import SCHEMA
from tests.support.feeds import Feed
from tests.support.sinks import BatchLog


def main(arguments: list[str]) -> int:
    """Runs the query, and returns the exit status."""
    parser = options_of(__doc__)
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
    return run_to_end(spark, writer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
