"""Nexmark's queries with the provider under test: the answer of each is that of a batch query over the same events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.nexmark.generator import Stream, prepare
from benchmarks.nexmark.queries import CLOSED, QUERIES, Query, read
from benchmarks.stores.runner import FLOOR_JAR
from spark_ckpt.config import EXTENSIONS_CLASS, EXTENSIONS_KEY
from tests.support.provider import ProviderUnderTest
from tests.support.session import open_session
from tests.support.spark_version import DEFAULT, MINOR

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(MINOR != DEFAULT, reason=f"the queries are compiled for Spark {DEFAULT}, this is {MINOR}"),
]

STREAM = Stream(events=1000, batches=3, rate=100, seed=5)
"""Ten seconds of event time a batch, as in the benchmark."""


SOME = ("q3", "q4", "q11")
"""A join, `transformWithState` and session windows."""


@pytest.fixture(scope="module")
def spark(provider: ProviderUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    conf = {"spark.jars": str(FLOOR_JAR), EXTENSIONS_KEY: EXTENSIONS_CLASS}
    session = open_session(provider, tmp_path_factory.mktemp("nexmark"), conf=conf)
    yield session
    session.stop()


@pytest.mark.parametrize(
    "query", [pytest.param(QUERIES[name], id=name, marks=() if name in SOME else pytest.mark.long) for name in QUERIES]
)
def test_answers_as_a_batch_query(spark: SparkSession, tmp_path: Path, query: Query) -> None:
    events = prepare(tmp_path / "input", STREAM)
    found = run(spark, query, events, tmp_path)
    whole = spark.read.parquet(str(events))
    if query.mode == "append" and query.stateful:  # the last events close windows, and are in none that is closed
        whole = whole.where(CLOSED)
    expected = query.batch(whole).collect()
    assert len(expected) > 0
    if query.by_clock:  # windows of processing time: all of a bidder's together
        assert totals(found) == totals(expected)
    else:
        assert Counter(map(str, found)) == Counter(map(str, expected))


def run(spark: SparkSession, query: Query, events: Path, folder: Path) -> list[Row]:
    """The rows of the streaming query, where later ones replace earlier ones with the same key."""
    rows: list[Row] = []
    latest: dict[tuple[object, ...], Row] = {}

    def sink(frame: DataFrame, _: int) -> None:
        for row in frame.collect():
            rows.append(row)
            latest[tuple(row[name] for name in query.key)] = row

    started = (
        query.stream(read(spark, str(events), str(events)))
        .writeStream.outputMode(query.mode)
        .foreachBatch(sink)
        .option("checkpointLocation", (folder / "checkpoint").as_uri())
        .start()
    )
    try:
        started.processAllAvailable()
        assert started.lastProgress is not None
        ends = [json.loads(source.endOffset)["logOffset"] for source in started.lastProgress.sources]
        assert set(ends) == {STREAM.batches}, "a batch per file"
    finally:
        started.stop()
    return list(latest.values()) if query.key else rows


def totals(rows: list[Row]) -> Counter[int]:
    found: Counter[int] = Counter()
    for row in rows:
        found[row["bidder"]] += row["count"]
    return found
