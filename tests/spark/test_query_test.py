"""Queries driven by `QueryTest`, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StringType, StructField, StructType

from spark_ckpt import display
from spark_ckpt.testing import FIRST_TIME, BatchTimeoutError, NotUnderTestError, QueryTest
from tests.support.invariants import assert_invariants

CLICKS = "user STRING, at TIMESTAMP"
AN_HOUR = timedelta(hours=1)


def counts(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user").count()


def minutes(clicks: DataFrame) -> DataFrame:
    counted = clicks.withWatermark("at", "1 minute").groupBy(F.window("at", "1 minute")).count()
    return counted.select(F.col("window.start").alias("minute"), "count")


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 0, minute)


@pytest.fixture
def test_of(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., QueryTest]]:
    made: list[QueryTest] = []

    def make(query: Callable[..., DataFrame], inputs: dict[str, Any], **options: Any) -> QueryTest:
        made.append(QueryTest(spark, query, inputs, directory=tmp_path / f"query{len(made)}", **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_output_and_state_of_each_batch(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(counts, {"clicks": CLICKS}, output_mode="update")
    test.add("clicks", [("a", at(0)), ("b", at(0)), ("a", at(1))])
    assert sorted(test.run()) == [Row(user="a", count=2), Row(user="b", count=1)]
    assert test.run() == []
    test.add("clicks", [{"user": "a", "at": at(2)}])
    assert test.run() == [Row(user="a", count=3)]
    assert test.state() == [
        {"key": {"user": "a"}, "value": {"count": 3}},
        {"key": {"user": "b"}, "value": {"count": 1}},
    ]
    assert test.state(where="key.user = 'b'") == [{"key": {"user": "b"}, "value": {"count": 1}}]
    assert_invariants(test.location, orphans=True)


def test_a_restart_continues_from_the_checkpoint(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(counts, {"clicks": CLICKS}, output_mode="update")
    for number in range(1, 4):
        test.add("clicks", [("a", at(0))])
        assert test.run() == [Row(user="a", count=number)]
        test.restart()
        assert test.query is None


def test_a_query_begins_with_state(test_of: Callable[..., QueryTest], spark: SparkSession) -> None:
    test = test_of(counts, {"clicks": CLICKS}, output_mode="update")
    earlier = spark.createDataFrame([("a",), ("a",), ("b",)], "user STRING")
    test.write_state(counts(earlier))
    test.add("clicks", [("a", at(0))])
    assert test.run() == [Row(user="a", count=3)]
    with pytest.raises(NotUnderTestError, match="it has begun"):
        test.write_state(counts(earlier))


def test_the_batch_after_the_one_that_moved_the_watermark_puts_out_windows(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(minutes, {"clicks": CLICKS})
    test.add("clicks", [("a", at(0)), ("b", at(0))])
    assert test.run() == []
    test.add("clicks", [("a", at(9))])
    assert test.run() == []
    assert test.run() == [Row(minute=at(0), count=2)]
    assert test.watermark == datetime(2026, 1, 1, 0, 8, tzinfo=timezone.utc)
    assert [row["value"] for row in test.state()] == [{"count": 1}]
    test.add("clicks", [("late", at(0))])
    assert test.run(2) == []


def test_a_watermark_to_begin_with(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(
        lambda clicks: clicks.withWatermark("at", "1 minute").dropDuplicates(["user", "at"]), {"clicks": CLICKS}
    )
    test.write_state(
        {"default": pa.table({"user": pa.array([], pa.string()), "at": pa.array([], pa.timestamp("us", "UTC"))})},
        watermark=at(5),
    )
    test.add("clicks", [("late", at(1)), ("a", at(6))])
    assert [row.user for row in test.run()] == ["a"]


def test_two_inputs(test_of: Callable[..., QueryTest]) -> None:
    def joined(clicks: DataFrame, users: DataFrame) -> DataFrame:
        return clicks.join(users, "user").select("user", "name")

    test = test_of(joined, {"clicks": CLICKS, "users": "user STRING, name STRING"})
    test.add("clicks", [("a", at(0))])
    assert test.run() == []
    test.add("users", [("a", "Ada")])
    assert test.run() == [Row(user="a", name="Ada")]
    with pytest.raises(NotUnderTestError, match=r"no input 'user'; its inputs are clicks, users"):
        test.add("user", [])


class Idle(StatefulProcessor):
    """Puts out a user who has not clicked for an hour, in processing time. Remembers names for two hours."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.seen = handle.getValueState("seen", StructType([StructField("n", LongType())]))
        self.names = handle.getValueState("names", StructType([StructField("n", LongType())]), ttlDurationMs=7_200_000)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        clicks = sum(len(frame) for frame in rows)
        before = self._clicks()
        self.seen.update((before + clicks,))
        known = self.names.exists()
        self.names.update((1,))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 3_600_000)
        yield pd.DataFrame({"user": [key[0]], "what": ["known" if known else "new"]})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803
        yield pd.DataFrame({"user": [key[0]], "what": [f"idle after {self._clicks()}"]})

    def _clicks(self) -> int:
        value = self.seen.get()
        return 0 if value is None else int(value[0])

    def close(self) -> None:
        pass


OUT = StructType([StructField("user", StringType()), StructField("what", StringType())])


def idle(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("user").transformWithStateInPandas(Idle(), OUT, "update", "ProcessingTime")


def test_timers_and_times_to_live_see_the_clock_of_the_test(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(idle, {"clicks": CLICKS}, output_mode="update")
    assert test.now == FIRST_TIME
    test.add("clicks", [("a", at(0)), ("a", at(0))])
    assert test.run() == [Row(user="a", what="new")]
    test.advance(AN_HOUR - timedelta(seconds=1))
    assert test.run() == []
    test.advance(timedelta(seconds=1))
    assert test.now > FIRST_TIME + AN_HOUR - timedelta(milliseconds=1)
    assert test.run() == [Row(user="a", what="idle after 2")]
    test.restart()
    test.add("clicks", [("a", at(0))])
    assert test.run() == [Row(user="a", what="known")]
    test.advance(3 * AN_HOUR)
    assert test.run() == [Row(user="a", what="idle after 3")]
    test.add("clicks", [("a", at(0))])
    assert test.run() == [Row(user="a", what="new")]
    assert [row["value"] for row in test.state(variable="seen")] == [{"n": 4}]


def test_a_clock_moves_forward_only(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(counts, {"clicks": CLICKS}, output_mode="update", now=datetime(2030, 5, 1))
    assert test.now == datetime(2030, 5, 1, tzinfo=timezone.utc)
    for step in (timedelta(0), timedelta(seconds=-1), timedelta(microseconds=5)):
        with pytest.raises(NotUnderTestError, match="its clock cannot move by"):
            test.advance(step)


def test_a_query_that_fails(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(lambda clicks: clicks.select(F.raise_error(F.col("user")).alias("x")), {"clicks": CLICKS})
    test.add("clicks", [("oops", at(0))])
    with pytest.raises(StreamingQueryException, match="oops"):
        test.run()


def test_a_batch_that_takes_too_long(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(counts, {"clicks": CLICKS}, output_mode="update", timeout=0.01)
    test.add("clicks", [("a", at(0))])
    with pytest.raises(BatchTimeoutError, match=r"not ended within 0\.01 s"):
        test.run()


def test_sessions_that_are_not_set_up(spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.streaming.stateStore.providerClass", "org.example.Other")
    with pytest.raises(NotUnderTestError, match=r"not set up: build it with spark_ckpt\.configure"):
        QueryTest(other, counts, {"clicks": CLICKS})
    with pytest.raises(NotUnderTestError, match="Spark Connect"):
        QueryTest(object(), counts, {"clicks": CLICKS})  # type: ignore[arg-type]


def test_a_temporary_directory_is_deleted(spark: SparkSession) -> None:
    with QueryTest(spark, counts, {"clicks": CLICKS}, output_mode="update") as test:
        test.add("clicks", [("a", at(0))])
        test.run()
        assert Path(test.location, "commits", "0").exists()
    assert not Path(test.location).parent.exists()


def test_a_notebook_shows_it(test_of: Callable[..., QueryTest]) -> None:
    test = test_of(counts, {"clicks": CLICKS}, output_mode="update")
    test.add("clicks", [("a", at(0)), ("b", at(0))])
    test.run()
    assert test.query is not None
    shown = display(test.query)
    assert shown.rows is not None
    assert shown.rows.titles == ["key.user", "value.count", "partition_id"]
    assert sorted(row[:2] for row in shown.rows.cells) == [["a", "1"], ["b", "1"]]
    test.query.stop()
    assert str(display(test.query)) == str(shown)
