"""Answers of Spark's batch queries, as digests to compare with Flink's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.flink.running import Answer
from benchmarks.flink.sql import QUERIES
from benchmarks.nexmark.queries import QUERIES as IN_SPARK
from benchmarks.stores.runner import FLOOR_JAR


def expected(spark: SparkSession, query: str, files: Iterable[Path]) -> Answer:
    """Digest of the batch answer of a query over files of events."""
    answer = IN_SPARK[query].batch(spark.read.parquet(*map(str, files)))
    sums = [F.sum(F.col(column).cast("long")) for column in QUERIES[query].checked.values()]
    rows, *found = answer.agg(F.count(F.lit(1)), *sums).first() or (0,)
    return Answer(rows, tuple(int(one or 0) for one in found))


@contextmanager
def session(work: Path, jars: Sequence[Path] = ()) -> Iterator[SparkSession]:
    """A Spark session with the Scala parts of the queries and more jars, which ends with the block."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(map(str, (FLOOR_JAR, *jars))),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
    }
    builder = SparkSession.builder.master("local[*]").appName("answers")
    spark = builder.config(map=settings).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
