"""Driver program of the upgrade tests: continues golden queries with the Spark of the Python that runs it.

Each query has a folder of its own, with its feeds, its checkpoint location and its output. The program gives each the
next part of its input, runs it to the end, and writes a `Report` per query as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.golden.locations import as_texts, batches_of, feeds_of, run
from tests.golden.queries import CHECKPOINT, QUERIES, GoldenQuery
from tests.support.provider import CKPT
from tests.support.session import open_session

BY_NAME = {query.name: query for query in QUERIES}


@dataclass(frozen=True)
class Report:
    """How a query went.

    Args:
        spark: version of Spark.
        error: message of the failure, or None.
        output: all rows of the sink so far, by batch.
        answer: the batch answer over all input so far.
        state: number of rows of state that Spark's `statestore` source reads.
    """

    spark: str
    error: str | None = None
    output: dict[str, list[list[str]]] | None = None
    answer: list[list[str]] | None = None
    state: int | None = None


def part(batches: int, number: int, parts: int) -> range:
    """Numbers of the batches in a part of the input; the parts are as equal as they can be."""
    return range(batches * number // parts, batches * (number + 1) // parts)


def continue_query(spark: SparkSession, query: GoldenQuery, folder: Path, number: int, parts: int) -> Report:
    """Gives a query the next part of its input and runs it to the end."""
    for key, value in query.settings().items():
        spark.conf.set(key, value)
    feeds = feeds_of(query, folder)
    for name, batches in batches_of(query).items():
        for batch in part(len(batches), number, parts):
            feeds[name].drop(batches[batch])
    location = folder / CHECKPOINT
    try:
        output = run(query, lambda: query.plan(spark, feeds), folder, location)
        state = sum(
            spark.read.format("statestore").options(**_reader_options(dict(read))).load(str(location)).count()
            for read in query.reads
        )
    except PySparkException as error:
        return Report(spark.version, str(error))
    answer = as_texts(query.answer(spark, feeds))
    return Report(spark.version, None, {str(b): as_texts(rows) for b, rows in output.items()}, answer, state)


def _reader_options(read: dict[str, str]) -> dict[str, str]:
    """Options of Spark's state reader for the arguments of `read_state`."""
    names = {"side": "joinSide", "variable": "stateVarName"}
    return {names[name]: value for name, value in read.items()}


def main() -> int:
    """Continues the queries, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--query", action="append", required=True, metavar="NAME:PART:PARTS", help="and its next input")
    parser.add_argument("--reports", type=Path, required=True)
    arguments = parser.parse_args()
    spark = open_session(CKPT, arguments.folder / "spark")
    reports = {}
    for query in arguments.query:
        name, number, parts = query.split(":")
        session = spark.newSession()
        for key, value in CKPT.conf().items():
            session.conf.set(key, value)
        folder = arguments.folder / name
        reports[name] = asdict(continue_query(session, BY_NAME[name], folder, int(number), int(parts)))
    spark.stop()
    arguments.reports.write_text(json.dumps(reports))
    return 0


if __name__ == "__main__":
    sys.exit(main())
