"""Queries that change their number of partitions while they run produce the batch answer, whatever their operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.location.rescale_request import (
    RescaleAnswer,
    RescaleRequest,
    create_request,
    delete_request,
    read_request,
)
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import committed_batches
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed, Row
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, Sink, assert_same_rows

CHAIN = (6, 4, 5, 1, 3)
"""Queries start with 3 partitions."""

MOST_BATCHES = 200


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: only our checkpoints support this rescale."""
    if not provider.is_ours:
        pytest.skip("only our provider's checkpoints can be rescaled by metadata")


def answers(
    runner: QueryRunner,
    plan: Callable[[], DataFrame],
    sink: Sink,
    feed: Feed,
    batches: Iterator[Sequence[Row]],
    chain: Sequence[int] = CHAIN,
) -> list[RescaleAnswer]:
    """Runs one query without a stop, and asks for one number after another."""
    storage, found = LocalStorage(runner.location), []
    query = runner.start(plan(), sink)
    try:
        feed.drop(next(batches))
        query.processAllAvailable()
        for number in chain:
            assert create_request(storage, RescaleRequest(number, 0))
            while (asked := read_request(storage)) is not None and asked.answer is None:
                feed.drop(next(batches))
                query.processAllAvailable()
            assert asked is not None
            assert asked.answer is not None
            found.append(asked.answer)
            delete_request(storage)
        feed.drop(next(batches))
        query.processAllAvailable()
    finally:
        query.stop()
    return found


def numbers(location: Path) -> list[int | None]:
    """The numbers of partitions in the offset log, without repetitions."""
    log = SparkLog(LocalStorage(location))
    there = [log.offsets(batch).shuffle_partitions for batch in committed_batches(location)]
    return [number for i, number in enumerate(there) if number != ([None, *there])[i]]


def by_key(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))


@pytest.mark.core
def test_running_aggregate(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    found = answers(runner, lambda: by_key(feed.stream(spark)), sink, feed, iter(events(rng, MOST_BATCHES, keys=60)))
    assert [answer.before for answer in found] == [3, *CHAIN[:-1]]
    assert numbers(runner.location) == [3, *CHAIN]
    rows: Rows = runner.finish(sink)
    assert_same_rows(rows, [tuple(row) for row in by_key(feed.table(spark)).collect()])
