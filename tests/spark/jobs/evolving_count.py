"""Driver program of a query that changes: a count by key, and with `--changed` a sum and a count.

With `--evolve`, the state is converted first, in the session that runs the changed query: by the driver, or with
`--evolve tasks` by Spark tasks. Rows go to `out/`, the input comes from `feeds/events`, both in the folder given.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_ckpt import evolve
from spark_ckpt.evolution import spark_tasks
from tests.spark.jobs.running_count import options_of, run, session
from tests.support.events import SCHEMA
from tests.support.feeds import Feed


def earlier(rows: DataFrame) -> DataFrame:
    """The earlier query."""
    return rows.groupBy("key").agg(sf.count("*").alias("n"))


def changed(rows: DataFrame) -> DataFrame:
    """The changed query."""
    return rows.groupBy("key").agg(sf.sum("value").alias("total"), sf.count("*").alias("n"))


def main(arguments: list[str]) -> int:
    """Runs one of the queries."""
    parser = options_of(__doc__)
    parser.add_argument("--location", required=True)
    parser.add_argument("--evolve", choices=("driver", "tasks"))
    options = parser.parse_args(arguments)
    spark = session(options)
    if options.evolve is not None:
        frame = changed(Feed(options.folder / "feeds" / "events", SCHEMA).stream(spark))
        if options.evolve == "tasks":
            spark_tasks.LARGE_ROWS = 1
        evolve(frame, options.location, output_mode="update")
        print(f"evolved with {len(spark.sparkContext.statusTracker().getJobIdsForGroup())} jobs", flush=True)
    return run(spark, options.folder, earlier if options.evolve is None else changed, options.location)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
