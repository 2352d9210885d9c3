"""A query that starts from state which means something else to it is refused, although Spark accepts it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt import read_state
from tests.support.events import SCHEMA, events
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider knows what state means")


def windows(length: str) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: rows.groupBy(sf.window("ts", length), "key").count()


def joined(left: str, right: str) -> Callable[[DataFrame], DataFrame]:
    """One source on both sides, once with small values only."""

    def plan(rows: DataFrame) -> DataFrame:
        sides = {"all": rows, "small": rows.where("value < 50")}
        renamed = sides[right].select(sf.col("key").alias("k"), sf.col("ts").alias("t"), sf.col("value").alias("v"))
        return sides[left].join(renamed, sf.expr("key = k and ts = t")).select("key", "value", "v")

    return plan


CHANGES: dict[str, tuple[Callable[[DataFrame], DataFrame], Callable[[DataFrame], DataFrame], str]] = {
    "another column": (
        lambda rows: rows.groupBy("key").agg(sf.sum("value")),
        lambda rows: rows.groupBy("key").agg(sf.sum(sf.col("value") * 2)),
        r"sum\(\(value \* 2\)\) in place of sum\(value\)",
    ),
    "another function": (
        lambda rows: rows.groupBy("key").agg(sf.sum(sf.col("value").cast("long"))),
        lambda rows: rows.groupBy("key").agg(sf.max(sf.col("value").cast("long"))),
        r"max\(value\) in place of sum\(value\)",
    ),
    "a filter of a function": (
        lambda rows: rows.groupBy("key").agg(sf.expr("count(*)")),
        lambda rows: rows.groupBy("key").agg(sf.expr("count(*) filter (where value > 5)")),
        "in place of count",
    ),
    "another key": (
        lambda rows: rows.groupBy("key").count(),
        lambda rows: rows.groupBy(sf.upper("key").alias("key")).count(),
        r"is upper\(0.key\), and was 0.key",
    ),
    "sides of a join": (joined("all", "small"), joined("small", "all"), "the sides of the join have changed places"),
    "another window": (
        windows("1 minute"),
        windows("5 minutes"),
        r"is window\(0.ts, 5 min long\), and was window\(0.ts, 1 min long\)",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_silent_change_is_refused(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, name: str
) -> None:
    before, after, words = CHANGES[name]
    mode = "append" if "join" in name else "update"
    feed = runner.feed("events", SCHEMA)
    first, second = events(rng, batches=2)
    feed.drop(first)
    runner.drain(before(feed.stream(spark)), BatchLog(tmp_path / "out", mode))
    feed.drop(second)
    with pytest.raises(StreamingQueryException, match=words):
        runner.drain(after(feed.stream(spark)), BatchLog(tmp_path / "changed", mode))
    runner.drain(before(feed.stream(spark)), BatchLog(tmp_path / "out", mode))


def test_a_setting_accepts_it(runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    before, after, _ = CHANGES["another column"]
    feed = runner.feed("events", SCHEMA)
    first, second, third = events(rng, batches=3)
    feed.drop(first)
    runner.drain(before(feed.stream(spark)), BatchLog(tmp_path / "out", "update"))
    feed.drop(second)
    spark.conf.set(CKPT_PREFIX + "onQueryChange", "warn")
    try:
        runner.drain(after(feed.stream(spark)), BatchLog(tmp_path / "out", "update"))
    finally:
        spark.conf.unset(CKPT_PREFIX + "onQueryChange")
    feed.drop(third)
    runner.drain(after(feed.stream(spark)), BatchLog(tmp_path / "out", "update"))


def test_sources_that_change_places_are_refused(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """Each would read from the position of the other one."""
    feeds = [runner.feed(name, SCHEMA) for name in ("a", "b")]
    for feed in feeds:
        feed.drop(events(rng, batches=1)[0])

    def plan(first: int, second: int) -> DataFrame:
        rows = feeds[first].stream(spark).select("key").union(feeds[second].stream(spark).select("key"))
        return rows.groupBy("key").count()

    runner.drain(plan(0, 1), BatchLog(tmp_path / "out", "update"))
    feeds[0].drop(events(rng, batches=1)[0])
    with pytest.raises(StreamingQueryException, match=r"source 0 is json .*/b, and was json .*/a|basePath"):
        runner.drain(plan(1, 0), BatchLog(tmp_path / "changed", "update"))


def lateness(rows: DataFrame) -> DataFrame:
    now = sf.current_timestamp()
    late = rows.withColumn("late", now.cast("long") - sf.col("ts").cast("long"))
    return late.withColumn("at", sf.date_format(now, "HH:mm:ss.SSS")).groupBy("key").agg(sf.max("late"), sf.max("at"))


UNCHANGED: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "time of the batch": (lateness, "update"),
    "time in a key": (lambda rows: rows.groupBy(sf.current_timestamp().alias("now"), "key").count(), "update"),
    "time in a de-duplication": (
        lambda rows: rows.withColumn("now", sf.current_timestamp()).dropDuplicates(["key", "now"]),
        "append",
    ),
    "seed that Spark draws": (lambda rows: rows.groupBy((sf.rand() * 3).cast("int").alias("x")).count(), "update"),
    "id that Spark draws": (lambda rows: rows.withColumn("id", sf.expr("uuid()")).groupBy("id").count(), "update"),
}


@pytest.mark.core
@pytest.mark.parametrize("name", UNCHANGED)
def test_the_same_query_starts_again(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, name: str
) -> None:
    """Whatever differs in each batch, or in each plan."""
    plan, mode = UNCHANGED[name]
    feed = runner.feed("events", SCHEMA)
    for batch in events(rng, batches=3):
        feed.drop(batch)
        runner.drain(plan(feed.stream(spark)), BatchLog(tmp_path / "out", mode))


def test_a_constant_in_a_key_may_change(
    runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path
) -> None:
    """As in a daily run with its date as a parameter. The state of each value stays apart."""
    feed = runner.feed("events", SCHEMA)
    batches = events(rng, batches=3)
    for day, batch in enumerate(batches):
        feed.drop(batch)
        rows = feed.stream(spark).withColumn("day", sf.lit(f"2026-11-0{day + 1}"))
        runner.drain(rows.groupBy("day", "key").count(), BatchLog(tmp_path / "out", "update"))
    state = read_state(str(runner.location)).to_arrow().to_pylist()
    found = {(each["key"]["day"], each["key"]["key"]): each["value"]["count"] for each in state}
    assert found == Counter((f"2026-11-0{day + 1}", row[1]) for day, batch in enumerate(batches) for row in batch)
