"""The judge: compares every table written by the streams with a plain batch query over the same files.

Runs in a process of its own with a fresh Spark, so that no state of the streams' driver can help or hide anything.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.demo import tables
from benchmarks.demo.data import CLOSING_ORIGIN
from benchmarks.demo.layout import Layout
from benchmarks.demo.queries import DemoQuery
from benchmarks.demo.session import open_session
from benchmarks.demo.stages import queries_of

SAMPLE = 5


@dataclass(frozen=True)
class Verdict:
    """One table against its batch answer. `missing` and `surplus` count rows, with their multiplicity."""

    query: str
    streamed: int
    expected: int
    missing: int
    surplus: int
    examples: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """True if the table holds exactly the rows of the answer, with the same multiplicity."""
        return self.streamed == self.expected and not self.missing and not self.surplus


def compare(spark: SparkSession, layout: Layout, query: DemoQuery) -> Verdict:
    """Judge one query."""
    flights, weather = spark.read.parquet(*map(str, layout.all_flights)), spark.read.parquet(str(layout.weather))
    # The closing mark of the flights only advances the watermark. It has no partner and appears in no result.
    expected = query.build(flights.where(F.col("origin") != CLOSING_ORIGIN), weather)
    streamed = tables.read(spark, layout.table(query.name), query.merge_key).select(*expected.columns)
    if streamed.dtypes != expected.dtypes:
        raise SystemExit(f"the table of {query.name} has columns {streamed.dtypes} instead of {expected.dtypes}")
    difference = _difference(streamed, expected).cache()
    missing, surplus = (_total(difference, sign) for sign in (-1, 1))
    examples = [str(row) for row in difference.limit(SAMPLE).collect()]
    return Verdict(query.name, streamed.count(), expected.count(), missing, surplus, tuple(examples))


def _difference(streamed: DataFrame, expected: DataFrame) -> DataFrame:
    """Rows whose multiplicity differs, with the stream's surplus (negative where the stream lacks rows)."""
    columns = streamed.columns
    both = streamed.withColumn("_times", F.lit(1)).unionAll(expected.withColumn("_times", F.lit(-1)))
    return both.groupBy(*columns).agg(F.sum("_times").alias("_times")).where("_times != 0")


def _total(difference: DataFrame, sign: int) -> int:
    total = difference.where(F.col("_times") * sign > 0).agg(F.sum("_times")).first()
    return 0 if total is None or total[0] is None else abs(int(total[0]))


def main() -> None:
    """Write the verdicts on all queries to a file, as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--stage", type=int, help="stage whose queries are the ones to compare with")
    arguments = parser.parse_args()
    layout = Layout(arguments.work)
    spark = open_session(layout.work, None)
    try:
        verdicts = [asdict(compare(spark, layout, query)) for query in queries_of(arguments.stage)]
    finally:
        spark.stop()
    arguments.result.write_text(json.dumps(verdicts, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
