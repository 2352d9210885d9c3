"""Checkpoint metrics in a query's progress (docs/metrics.md)."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.provider import CKPT_PREFIX, REPOSITORY, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog
from tests.support.spark_version import since

Figures = dict[str, int]

TIMES = ("ckptSnapshotTimeMs", "ckptWriteTimeMs", "ckptAcknowledgeTimeMs")

# Spark appends partition and store.
NEWEST_BASE = "SnapshotLastUploaded."


@pytest.fixture
def run(
    runner: QueryRunner, spark: SparkSession, tmp_path: Path, feed: Feed, provider: ProviderUnderTest
) -> Callable[[int], list[Figures]]:
    """Starts a running count, feeds it batches one by one, stops it, and returns the metrics of each batch."""
    if not provider.is_ours:
        pytest.skip("the metrics are ours")
    rng = random.Random(1)

    def by_key(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))

    def run(batches: int) -> list[Figures]:
        query = runner.start(by_key(feed.stream(spark)), BatchLog(tmp_path / "out", "update"))
        for batch in events(rng, batches):
            feed.drop(batch)
            query.processAllAvailable()
        query.stop()
        operators = [p.stateOperators[0] for p in query.recentProgress if p.numInputRows]
        assert len(operators) == batches
        return [{**op.customMetrics, "commitTimeMs": op.commitTimeMs} for op in operators]

    return run


@pytest.fixture
def feed(runner: QueryRunner) -> Feed:
    """Feed of the query."""
    return runner.feed("events", SCHEMA)


def test_figures_of_each_batch(run: Callable[[int], list[Figures]]) -> None:
    """Every batch has changes; a start loads all bytes written before, and later batches load nothing."""
    before, after = run(3), run(2)
    assert all(figures["ckptDeltaBytes"] > 0 for figures in before + after)
    assert after[0]["ckptRestoredBytes"] == sum(figures["ckptDeltaBytes"] for figures in before)
    assert after[0]["ckptRestoredSegments"] >= len(before)
    for figures in [*before, after[1]]:
        assert figures["ckptRestoredBytes"] == figures["ckptRestoredSegments"] == 0
    for figures in before + after:
        assert sum(figures[name] for name in TIMES) <= figures["commitTimeMs"]
        assert figures["ckptBaseBytes"] == 0


def test_figures_of_bases(run: Callable[[int], list[Figures]], spark: SparkSession) -> None:
    """The batch that carries a base reports its bytes; a later start loads less than the total written."""
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", "1")
    before = run(12)
    assert any(figures["ckptBaseBytes"] > 0 for figures in before)
    assert run(1)[0]["ckptRestoredBytes"] < sum(figures["ckptDeltaBytes"] for figures in before)


def newest_bases(figures: Figures) -> dict[str, int]:
    """Versions of the newest bases, by partition and store, for those that lag most."""
    return {name: version for name, version in figures.items() if name.startswith(NEWEST_BASE)}


@since("4.1", "metrics of single stores")
def test_partitions_that_lag(run: Callable[[int], list[Figures]], spark: SparkSession) -> None:
    """A partition with deltas only lags by all of its versions, also after a restart, until it has a base."""
    for figures in [*run(3), *run(2)]:
        assert min(newest_bases(figures).values()) == 0
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", "1")
    assert min(newest_bases(run(12)[-1]).values()) > 5


def test_all_are_documented(run: Callable[[int], list[Figures]]) -> None:
    """The page lists exactly the existing metrics."""
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    page = page.partition("## In Spark's metrics system")[0]
    documented = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    figures = run(1)[0]
    assert documented == set(figures) - {"commitTimeMs"} - set(newest_bases(figures))
    assert f"`{NEWEST_BASE}partition_" in page
