"""A query of Nexmark until it is killed, as a spark-submit program.

spark-submit ... continuing.py QUERY FEED LOCATION
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from benchmarks.nexmark.queries import QUERIES, read


def main(query: str, feed: str, location: str) -> None:
    """Runs the query over a folder of events, a file per batch, from where its checkpoint location ends."""
    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    of = QUERIES[query]
    writer = of.stream(read(spark, feed, feed)).writeStream.format("noop").outputMode(of.mode)
    writer.option("checkpointLocation", location).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
