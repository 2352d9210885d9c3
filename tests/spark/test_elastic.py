"""A running query that changes its number of partitions by itself produces the batch answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import spark_ckpt
from spark_ckpt.elasticity import Decision, Observation
from spark_ckpt.location.rescale_request import read_request
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import committed_batches
from tests.support.events import SCHEMA, events
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows
from tests.support.waiting import eventually

MOST_BATCHES = 200

pytestmark = pytest.mark.usefixtures("ours_only")


class Script:
    """Wants one number after another, each as soon as the query has the one before."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)
        self.seen: list[Observation] = []

    def decide(self, observation: Observation) -> Decision | None:
        self.seen.append(observation)
        return Decision(self.numbers.pop(0), "the script says so") if self.numbers else None


def numbers(location: Path) -> list[int | None]:
    """The numbers of partitions in the offset log, without repetitions."""
    log = SparkLog(LocalStorage(location))
    there = [log.offsets(batch).shuffle_partitions for batch in committed_batches(location)]
    return [number for i, number in enumerate(there) if number != ([None, *there])[i]]


@pytest.mark.parametrize("dry", [False, True], ids=["real", "dry"])
def test_a_scripted_policy(
    dry: bool, spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    batches: Iterator[list[tuple[object, ...]]] = iter(events(rng, MOST_BATCHES, keys=60))

    def plan(frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))

    policy = Script(6, 2)
    query = runner.start(plan(feed.stream(spark)), sink)
    running = spark_ckpt.elastic(query, policy, dry=dry)
    try:
        while [decision.outcome for decision in running.decisions] not in (["done", "done"], ["dry", "dry"]):
            feed.drop(next(batches))
            query.processAllAvailable()
        feed.drop(next(batches))
        query.processAllAvailable()
    finally:
        query.stop()
    eventually(lambda: not running.is_active)
    assert running.errors == []
    if dry:
        assert numbers(runner.location) == [3]
    else:
        assert numbers(runner.location) == [3, 6, 2]
        assert [(decision.before, decision.after) for decision in running.decisions] == [(3, 6), (6, 2)]
        assert {seen.partitions for seen in policy.seen} >= {3, 6}
    assert all(seen.cores and seen.executors and seen.batch_ms for seen in policy.seen)
    assert policy.seen[-1].state_rows
    assert read_request(LocalStorage(runner.location)) is None
    assert_same_rows(runner.finish(sink), [tuple(row) for row in plan(feed.table(spark)).collect()])
