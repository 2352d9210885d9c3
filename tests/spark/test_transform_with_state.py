"""transformWithState is refused with one clear error until the keyed backend serves it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.events import SCHEMA, events
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog


class Count(StatefulProcessor):
    """Counts the rows of a key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long")

    def handleInputRows(self, key: tuple[str], rows: Iterator[pd.DataFrame], timers: object) -> Iterator[pd.DataFrame]:  # noqa: N802
        count = (self.count.get() or (0,))[0] + sum(len(frame) for frame in rows)
        self.count.update((count,))
        yield pd.DataFrame({"key": [key[0]], "n": [count]})

    def close(self) -> None:
        return


def test_refused_with_a_clear_error(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, provider: ProviderUnderTest
) -> None:
    """The query fails in its first batch; the error names the operator and the provider, and nothing is left."""
    if not provider.is_ours:
        pytest.skip("Spark's RocksDB provider serves it, and the refusal of the other one is Spark's")
    feed = runner.feed("events", SCHEMA)
    feed.drop(events(rng, 1)[0])
    grouped = feed.stream(spark).groupBy("key")
    frame = grouped.transformWithStateInPandas(Count(), "key string, n long", "update", "none")
    with pytest.raises(StreamingQueryException) as raised:
        runner.drain(frame, BatchLog(tmp_path / "out", "update"))
    message = str(raised.value)
    assert "transformWithState" in message or "TransformWithState" in message
    assert provider.class_name.rpartition(".")[2] in message, message
    assert not committed_batches(runner.location)
    assert not completed_checkpoints(runner.location)
