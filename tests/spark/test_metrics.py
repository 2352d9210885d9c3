"""What a query's progress says of checkpoints (docs/metrics.md)."""

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

Figures = dict[str, int]

TIMES = ("ckptSnapshotTimeMs", "ckptWriteTimeMs", "ckptAcknowledgeTimeMs")


@pytest.fixture
def run(
    runner: QueryRunner, spark: SparkSession, tmp_path: Path, feed: Feed, provider: ProviderUnderTest
) -> Callable[[int], list[Figures]]:
    """Starts a running count, gives it so many batches one by one, stops it, and returns the figures of each batch."""
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
    """The input."""
    return runner.feed("events", SCHEMA)


def test_figures_of_each_batch(run: Callable[[int], list[Figures]]) -> None:
    """Every batch has changes; what a start loads is what was written before, and later batches load nothing."""
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
    """The batch that a base goes with has its bytes; a start then loads less than all that was ever written."""
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", "1")
    before = run(12)
    assert any(figures["ckptBaseBytes"] > 0 for figures in before)
    assert run(1)[0]["ckptRestoredBytes"] < sum(figures["ckptDeltaBytes"] for figures in before)


def test_all_are_documented(run: Callable[[int], list[Figures]]) -> None:
    """The page has exactly the metrics that there are."""
    lines = (REPOSITORY / "docs" / "metrics.md").read_text().splitlines()
    documented = {line.split("`")[1] for line in lines if line.startswith("| `")}
    assert documented == set(run(1)[0]) - {"commitTimeMs"}
