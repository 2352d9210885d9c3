"""applyInPandasWithState, PySpark's form of flatMapGroupsWithState, with both kinds of timeouts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from tests.support.events import BATCH_SECONDS, SCHEMA, end, events
from tests.support.feeds import at
from tests.support.formats import mainly_with_ids
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows

OUTPUT = "key string, n long, total long"
STATE = "n long, total long"
BURST_EVERY = 5
"""Number of batches between two bursts of a key; its timeout expires in between."""


def bursts(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Sums a key's rows and emits the sums after 15 seconds of event time without a row."""
    if state.hasTimedOut:
        count, total = state.get
        state.remove()
        yield pd.DataFrame({"key": [key[0]], "n": [count], "total": [total]})
        return
    count, total = state.getOption or (0, 0)
    latest = 0
    for frame in frames:
        count += len(frame)
        total += int(frame["value"].sum())
        latest = max(latest, int(frame["ts"].max().timestamp() * 1000))
    state.update((count, total))
    state.setTimeoutTimestamp(max(latest + 15_000, state.getCurrentWatermarkMs() + 1))


def bundles(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Sums a key's rows and emits the sums soon after, in processing time."""
    if state.hasTimedOut:
        count, total = state.get
        state.remove()
        yield pd.DataFrame({"key": [key[0]], "n": [count], "total": [total]})
        return
    count, total = state.getOption or (0, 0)
    for frame in frames:
        count += len(frame)
        total += int(frame["value"].sum())
    state.update((count, total))
    state.setTimeoutDuration(200)


@mainly_with_ids
def test_event_time_timeouts(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """Every burst of a key is emitted once, with all its rows, once the watermark has passed its timeout."""
    feed = runner.feed("events", SCHEMA)
    batches: list[Rows] = []
    expected: Rows = []
    for batch in range(8):
        rows: Rows = []
        for number in range(batch % BURST_EVERY, 15, BURST_EVERY):
            moments = [batch * BATCH_SECONDS + rng.randrange(BATCH_SECONDS) for _ in range(rng.randrange(1, 6))]
            burst: Rows = [(at(moment), f"k{number}", rng.randrange(1000)) for moment in moments]
            expected.append((f"k{number}", len(burst), sum(int(str(row[2])) for row in burst)))
            rows += burst
        batches.append(rng.sample(rows, len(rows)))

    def plan() -> DataFrame:
        grouped = feed.stream(spark).withWatermark("ts", "5 seconds").groupBy("key")
        return grouped.applyInPandasWithState(bursts, OUTPUT, STATE, "append", GroupStateTimeout.EventTimeTimeout)

    rows = runner.run(plan, BatchLog(tmp_path / "out", "append"), {feed: [*batches, end()]})
    assert len({row[0] for row in expected}) < len(expected), "no key had two bursts"
    assert_same_rows(rows, expected)


def test_processing_time_timeouts(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """However the clock bundles the rows of a key over three starts, each row is counted once."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "append")
    batches = events(rng, batches=6)

    def emitted() -> dict[object, tuple[int, int]]:
        sums: dict[object, tuple[int, int]] = {}
        for key, count, total in sink.rows():
            before = sums.get(key, (0, 0))
            sums[key] = (before[0] + int(str(count)), before[1] + int(str(total)))
        return sums

    def expected() -> dict[object, tuple[int, int]]:
        sums: dict[object, tuple[int, int]] = {}
        for _, key, value in feed.rows():
            before = sums.get(key, (0, 0))
            sums[key] = (before[0] + 1, before[1] + int(str(value)))
        return sums

    for part in range(3):
        for batch in batches[2 * part : 2 * part + 2]:
            feed.drop(batch)
        grouped = feed.stream(spark).groupBy("key")
        frame = grouped.applyInPandasWithState(
            bundles, OUTPUT, STATE, "append", GroupStateTimeout.ProcessingTimeTimeout
        )
        query = runner.start(frame, sink, lambda writer: writer.trigger(processingTime="100 milliseconds"))
        try:
            runner.await_(lambda: bool(sink.batches()), query=query)
            if part == 2:
                runner.await_(lambda: emitted() == expected(), query=query)
        finally:
            query.stop()
    runner.finish(sink)
    assert emitted() == expected()


@pytest.mark.long
def test_state_without_timeout(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """Update mode without timeouts: a running sum that survives restarts."""
    feed = runner.feed("events", SCHEMA)

    def running(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        count, total = state.getOption or (0, 0)
        for frame in frames:
            count += len(frame)
            total += int(frame["value"].sum())
        state.update((count, total))
        yield pd.DataFrame({"key": [key[0]], "n": [count], "total": [total]})

    def plan() -> DataFrame:
        grouped = feed.stream(spark).groupBy("key")
        return grouped.applyInPandasWithState(running, OUTPUT, STATE, "update", GroupStateTimeout.NoTimeout)

    rows = runner.run(plan, BatchLog(tmp_path / "out", "update"), {feed: events(rng)})
    expected = feed.table(spark).groupBy("key").agg({"*": "count", "value": "sum"})
    assert_same_rows(rows, [tuple(row) for row in expected.collect()])
