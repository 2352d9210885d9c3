"""A running count by key, for tests that break its checkpoint location and repair it again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows


class RunningCount:
    """A query over its own feed, which starts with two files."""

    def __init__(self, spark: SparkSession, runner: QueryRunner, folder: Path, rng: random.Random) -> None:
        self.spark = spark
        self.runner = runner
        self.location = runner.location
        self.feed: Feed = runner.feed("events", SCHEMA)
        self.sink = BatchLog(folder / "out", "update")
        self._rng = rng
        self.drop(2)

    def drop(self, batches: int) -> None:
        """Adds input files to the feed."""
        for batch in events(self._rng, batches):
            self.feed.drop(batch)

    def plan(self, frame: DataFrame) -> DataFrame:
        """Count and sum by key."""
        return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))

    def stream(self) -> DataFrame:
        """The plan over the feed."""
        return self.plan(self.feed.stream(self.spark))

    def drain(self) -> None:
        """Runs until all available input is processed."""
        self.runner.drain(self.stream(), self.sink)

    def fails(self, *words: str) -> None:
        """Runs into a fault: the error contains all these words, and the batch has no commit and no checkpoint."""
        committed, completed = committed_batches(self.location), completed_checkpoints(self.location)
        with pytest.raises(StreamingQueryException) as raised:
            self.drain()
        for word in words:
            assert word in str(raised.value), f"no {word!r} in: {raised.value}"
        assert committed_batches(self.location) == committed, "a batch was committed without its checkpoint"
        assert completed_checkpoints(self.location) == completed, "a failed batch has left a checkpoint"

    def recovers(self) -> None:
        """Runs again without the fault: the query continues, and no row is lost or counted twice."""
        self.drop(2)
        self.drain()
        self.is_right()

    def is_right(self) -> None:
        """Asserts that the sink holds the batch answer and that the location is in order."""
        expected = [tuple(row) for row in self.plan(self.feed.table(self.spark)).collect()]
        assert_same_rows(self.runner.finish(self.sink), expected)
