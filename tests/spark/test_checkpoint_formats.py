"""Restarts with the other format of Spark's state-store checkpoints: with and without state ids."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.events import SCHEMA, events
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows
from tests.support.spark_version import since

STATE_STORE = "spark.sql.streaming.stateStore"


def totals(frame: DataFrame) -> DataFrame:
    """A sum per key."""
    return frame.groupBy("key").agg(sf.sum("value").alias("total"))


@since("4.2", "commit logs in which both formats follow each other")
@pytest.mark.parametrize("unload", ["false", "true"], ids=["in-memory", "unloaded"])
def test_ids_that_are_turned_off_and_on(
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    provider: ProviderUnderTest,
    unload: str,
) -> None:
    """Each start continues from the previous state for several batches, whether its state stays in memory or not.

    Without ids Spark passes on those of the last commit before the start, batch after batch: they do not count.
    """
    if not provider.is_ours:
        pytest.skip("Spark's own providers name their files by the format")
    spark.conf.set(f"{STATE_STORE}.unloadOnCommit", unload)
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    batches = iter(events(rng, 12))
    for checkpoint_format in (2, 1, 2, 1):
        spark.conf.set(f"{STATE_STORE}.checkpointFormatVersion", checkpoint_format)
        for batch in islice(batches, 3):
            feed.drop(batch)
        runner.drain(totals(feed.stream(spark)), sink)
    assert_same_rows(runner.finish(sink), [tuple(row) for row in totals(feed.table(spark)).collect()])
