"""Driver program: `transformWithState` in Scala, whose jar is on the class path, over the files of a folder."""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame

from tests.spark.jobs.running_count import parse, run, session


def plan(frame: DataFrame) -> DataFrame:
    """Rows, maximum and distinct values by key, computed by RunningMaximum.scala."""
    spark = frame.sparkSession
    result = spark._jvm.RunningMaximum.of(frame._jdf)  # type: ignore[union-attr]
    return DataFrame(result, spark).toDF("key", "n", "largest", "distinct")


def main(arguments: list[str]) -> int:
    """Runs the query to the end of its input."""
    options = parse(arguments)
    return run(session(options), options.folder, plan)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
