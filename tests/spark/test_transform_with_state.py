"""transformWithState in Python, with rows and with pandas: all kinds of state, timers, TTL and initial state."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from tests.spark.processors import COUNTS, RememberingFrames, RememberingRows, remembered
from tests.support.events import BATCH_SECONDS, SCHEMA, end, events, without_end
from tests.support.feeds import at
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows
from tests.support.spark_version import needs_rows

SUMS = "key string, n long, total long"


@pytest.fixture(autouse=True)
def served(provider: ProviderUnderTest) -> None:
    """Skips Spark's other built-in provider, which has no column families."""
    if provider.name == "hdfs":
        pytest.skip("Spark runs transformWithState with its RocksDB provider or ours")


@pytest.mark.core
@pytest.mark.parametrize(
    ("kind", "checkpoint_format"),
    [
        pytest.param("rows", "ids-off", marks=needs_rows),
        ("pandas", "ids-on"),
    ],
    indirect=["checkpoint_format"],
)
def test_value_list_and_map(
    kind: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """All three kinds of state survive restarts, and Spark's state reader finds them."""
    feed = runner.feed("events", SCHEMA)

    def plan() -> DataFrame:
        grouped = feed.stream(spark).groupBy("key")
        if kind == "rows":
            return grouped.transformWithState(RememberingRows(), COUNTS, "update", "none")
        return grouped.transformWithStateInPandas(RememberingFrames(), COUNTS, "update", "none")

    rows = runner.run(plan, BatchLog(tmp_path / "out", "update"), {feed: events(rng, batches=7)})
    known = remembered([[tuple(row) for row in batch] for batch in feed.batches])
    assert any(count > 20 for count, _, _ in known.values()), "nothing was forgotten"
    expected: Rows = [
        (key, count, str(sorted(listed)), str(sorted(mapped.items()))) for key, (count, listed, mapped) in known.items()
    ]
    assert_same_rows(rows, expected)

    def state(variable: str, *columns: str) -> Rows:
        reader = spark.read.format("statestore").option("stateVarName", variable)
        return [tuple(row) for row in reader.load(str(runner.location)).selectExpr("key.key", *columns).collect()]

    assert_same_rows(state("count", "value.n"), [(key, count) for key, (count, _, _) in known.items()])
    listed: Rows = [(key, value) for key, (_, values, _) in known.items() for value in values]
    assert_same_rows(state("listed", "list_element.value"), listed)
    mapped: Rows = [(key, digit, n) for key, (_, _, digits) in known.items() for digit, n in digits.items()]
    assert_same_rows(state("mapped", "user_map_key.digit", "user_map_value.n"), mapped)


class Expiring(StatefulProcessor):
    """Sums a key's rows and emits the sums after 15 seconds of event time without a row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.sums = handle.getValueState("sums", "n long, total long")

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        count, total = self.sums.get() or (0, 0)
        latest = 0
        for row in rows:
            count += 1
            total += row.value
            latest = max(latest, int(row.ts.timestamp() * 1000))
        self.sums.update((count, total))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(max(latest, timers.getCurrentWatermarkInMs()) + 15_000)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[str],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        count, total = self.sums.get() or (0, 0)
        self.sums.clear()
        yield Row(key=key[0], n=count, total=total)

    def close(self) -> None:
        return


@needs_rows
def test_event_time_timers(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """A key has rows in one batch or in two consecutive ones, and is emitted once, afterwards."""
    feed = runner.feed("events", SCHEMA)
    batches: list[Rows] = [[] for _ in range(6)]
    expected: Rows = []
    for number in range(40):
        values = [rng.randrange(1000) for _ in range(rng.randrange(1, 6))]
        first = rng.randrange(5)
        for value in values:
            batch = first + rng.randrange(2)
            batches[batch].append((at((batch + 0.4 + 0.2 * rng.random()) * BATCH_SECONDS), f"k{number}", value))
        expected.append((f"k{number}", len(values), sum(values)))

    def plan() -> DataFrame:
        grouped = feed.stream(spark).withWatermark("ts", "15 seconds").groupBy("key")
        return grouped.transformWithState(Expiring(), SUMS, "append", "eventTime")

    rows = runner.run(plan, BatchLog(tmp_path / "out", "append"), {feed: [*batches, end()]})
    assert_same_rows(without_end(rows), expected)


class Cancelling(StatefulProcessor):
    """Sets two timers for each key. The first one that expires deletes both."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        for row in rows:
            self.handle.registerTimer(row.value)
            self.handle.registerTimer(row.value + 1)
        return iter(())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: tuple[str],
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        left = list(self.handle.listTimers())
        for timer in left:
            self.handle.deleteTimer(timer)
        yield Row(key=key[0], n=len(left), total=expiredTimerInfo.getExpiryTimeInMs())

    def close(self) -> None:
        return


@needs_rows
def test_timer_deleted_by_an_earlier_one(runner: QueryRunner, spark: SparkSession, tmp_path: Path) -> None:
    """Both have expired when the first one is handled: the second is still handled, as with Spark's own provider."""
    feed = runner.feed("events", SCHEMA)
    rows_in: Rows = [(at(1), f"k{number}", 1000 + number) for number in range(10)]

    def plan() -> DataFrame:
        grouped = feed.stream(spark).withWatermark("ts", "15 seconds").groupBy("key")
        return grouped.transformWithState(Cancelling(), SUMS, "append", "eventTime")

    rows = runner.run(plan, BatchLog(tmp_path / "out", "append"), {feed: [rows_in, end()]}, (1,))
    expected: Rows = [row for _, key, timer in rows_in for row in ((key, 2, timer), (key, 0, int(str(timer)) + 1))]
    assert_same_rows(without_end(rows), expected)


class Starting(StatefulProcessor):
    """Counts the rows of a key from an initial number; also sums a list whose values live for a millisecond."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long", ttlDurationMs=3_600_000)
        self.recent = handle.getListState("recent", "value long", ttlDurationMs=1)

    def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timers: TimerValues) -> Iterator[Row]:  # noqa: N802
        values = [row.value for row in rows]
        count = (self.count.get() or (0,))[0] + len(values)
        self.count.update((count,))
        for value in values:
            self.recent.appendValue((value,))
        yield Row(key=key[0], n=count, total=sum(row[0] for row in self.recent.get()))

    def handleInitialState(self, key: tuple[str], initial: Any, timers: TimerValues) -> None:  # noqa: N802
        self.count.update((initial.n,))

    def close(self) -> None:
        return


@needs_rows
def test_initial_state_and_time_to_live(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """Counts start from the initial state and continue over restarts; an expiring sum covers the last batch only."""
    feed = runner.feed("events", SCHEMA)
    initial = {f"k{number}": 1000 * number for number in range(0, 12, 2)}

    def plan() -> DataFrame:
        start = spark.createDataFrame(list(initial.items()), "key string, n long").groupBy("key")
        grouped = feed.stream(spark).groupBy("key")
        return grouped.transformWithState(Starting(), SUMS, "update", "processingTime", initialState=start)

    # In processing time Spark runs batches continuously; only those with input have output.
    sink = BatchLog(tmp_path / "out", "update")
    for rows_in in events(rng, batches=4):
        feed.drop(rows_in)
        if len(feed.batches) % 2 == 0:
            runner.drain(plan(), sink, lambda: sum(map(bool, sink.batches().values())) == len(feed.batches))
    rows = runner.finish(sink)
    counts: Counter[str] = Counter(initial)
    latest: dict[str, int] = {}
    for batch in feed.batches:
        counts.update(str(row[1]) for row in batch)
        latest.update({str(key): sum(int(str(row[2])) for row in batch if row[1] == key) for _, key, _ in batch})
    assert_same_rows(rows, [(key, counts[key], total) for key, total in latest.items()])
