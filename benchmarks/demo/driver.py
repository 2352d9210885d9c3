"""The Spark application: all three queries in one driver, until the feed is exhausted.

It is unaware of kills: restarted with the same folder, it resumes from the checkpoints.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.demo import tables
from benchmarks.demo.layout import Layout
from benchmarks.demo.queries import DemoQuery
from benchmarks.demo.session import LOCAL, PROVIDERS, open_session
from benchmarks.demo.stages import queries_of
from benchmarks.demo.topics import Topics


def main() -> None:
    """Run the queries to the end of the feed."""
    arguments, layout = arguments_of(main.__doc__)
    spark = open_driver(arguments, layout)
    if arguments.ui:
        _announce(spark, layout)
    spark.sparkContext.setCheckpointDir(str(layout.changes))
    running = [start(spark, layout, query) for query in queries_of(layout.stage)]
    try:
        for stream in running:
            stream.awaitTermination()
    finally:
        spark.stop()


def arguments_of(description: str | None) -> tuple[argparse.Namespace, Layout]:
    """The arguments of a driver, and the layout that they describe."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--provider", choices=PROVIDERS, required=True)
    parser.add_argument("--master", default=LOCAL)
    parser.add_argument("--checkpoints", help="URI of a folder for the checkpoint locations")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--kafka", metavar="HOST:PORT", help="read the feeds from topics of this broker")
    parser.add_argument("--ui", action="store_true", help="serve Spark's UI, and write its address to a file")
    parser.add_argument("--stage", type=int, help="stage of a demo whose queries change")
    parser.add_argument("--moved", type=int, help="files of flights before they come from another folder")
    arguments = parser.parse_args()
    topics = None if arguments.kafka is None else Topics(arguments.kafka)
    conf = dict(pair.split("=", 1) for pair in arguments.conf)
    return arguments, Layout(arguments.work, arguments.checkpoints, conf, topics, arguments.stage, arguments.moved)


def open_driver(arguments: argparse.Namespace, layout: Layout) -> SparkSession:
    """Start Spark for the queries."""
    return open_session(
        layout.work,
        arguments.provider,
        arguments.master,
        layout.conf,
        has_kafka=layout.topics is not None,
        has_ui=arguments.ui,
    )


def rows_of(spark: SparkSession, layout: Layout, query: DemoQuery) -> DataFrame:
    """A query over both feeds, not started."""
    return query.build(*(_read(spark, layout, folder) for folder in (layout.flights, layout.weather)))


def start(spark: SparkSession, layout: Layout, query: DemoQuery) -> StreamingQuery:
    """Start one query over both feeds, writing to its table."""
    table = layout.table(query.name)
    result = rows_of(spark, layout, query)
    writer = (
        result.writeStream.queryName(query.name)
        .option("checkpointLocation", layout.checkpoint(query.name))
        .trigger(availableNow=True)
    )
    if query.merge_key is None:
        return tables.append(writer, table)
    return tables.merge(writer, table, result.schema, query.name, query.merge_key)


def _announce(spark: SparkSession, layout: Layout) -> None:
    part = layout.ui.with_suffix(".part")
    part.write_text(spark.sparkContext.uiWebUrl or "", encoding="utf-8")
    part.rename(layout.ui)


def _read(spark: SparkSession, layout: Layout, folder: Path) -> DataFrame:
    """Stream that reads one file per batch, or as many rows from a topic."""
    if layout.topics is not None:
        return layout.topics.read(spark, folder)
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


if __name__ == "__main__":
    main()
