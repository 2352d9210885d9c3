"""A query that is planned has the state files of a real start, and the meaning that its checkpoints record."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.checkpoint.compose import spark_batch_of
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.evolution.planning import plan_query
from spark_ckpt.location.find import CheckpointLocation
from spark_ckpt.spark_files.logs import BatchLog, SparkLog
from spark_ckpt.spark_files.schemas import with_nullable_columns
from spark_ckpt.storage import LocalStorage, files_below
from tests.spark.processors import COUNTS, RememberingRows
from tests.support.events import SCHEMA, events
from tests.support.feeds import Feed
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog as Sink
from tests.support.spark_version import needs_rows

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MINUTE = "1 minute"


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider records the meaning of state")


def timed(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("ts", MINUTE)


def joined(how: str) -> Callable[[DataFrame, DataFrame], DataFrame]:
    def plan(left: DataFrame, right: DataFrame) -> DataFrame:
        a, b = timed(left).alias("a"), timed(right).alias("b")
        on = sf.expr("a.key = b.key and a.ts >= b.ts and a.ts <= b.ts + interval 1 minute")
        return a.join(b, on, how).select("a.key", "a.value", sf.col("b.value").alias("other"))

    return plan


def expressions(rows: DataFrame, _: DataFrame) -> DataFrame:
    shouted = sf.udf(lambda text: text.upper(), "string")
    return rows.groupBy(sf.upper("key"), shouted("key")).agg(sf.expr("sum(value * 2) filter (where value > 1)"))


def lambdas(rows: DataFrame, _: DataFrame) -> DataFrame:
    total = sf.aggregate(sf.array("value"), sf.lit(0).cast("long"), lambda x, y: x + y)
    return rows.groupBy("key").agg(sf.sum(total))


def aggregation(rows: DataFrame, _: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(sf.count("*"), sf.avg("value"), sf.collect_set("value"))


KINDS: dict[str, tuple[Callable[[DataFrame, DataFrame], DataFrame], str]] = {
    "aggregation": (aggregation, "update"),
    "expressions": (expressions, "update"),
    "lambda": (lambdas, "update"),
    "global": (lambda a, _: a.groupBy().count(), "update"),
    "window": (lambda a, _: timed(a).groupBy(sf.window("ts", MINUTE), "key").count(), "append"),
    "sliding": (lambda a, _: timed(a).groupBy(sf.window("ts", "2 minutes", MINUTE), "key").count(), "append"),
    "session": (lambda a, _: timed(a).groupBy(sf.session_window("ts", MINUTE), "key").count(), "append"),
    "dedup": (lambda a, _: a.dropDuplicates(["key"]), "append"),
    "dedup within": (lambda a, _: timed(a).dropDuplicatesWithinWatermark(["key"]), "append"),
    "inner join": (joined("inner"), "append"),
    "outer join": (joined("left_outer"), "append"),
    "limit": (lambda a, _: a.limit(3), "append"),
    "union": (lambda a, b: a.union(b).groupBy("key").count(), "update"),
    "used twice": (lambda a, _: a.union(a).groupBy("key").count(), "update"),
    "chain": (
        lambda a, _: timed(a).dropDuplicates(["key", "ts"]).groupBy(sf.window("ts", MINUTE)).agg(sf.sum("value")),
        "append",
    ),
}


def checked(runner: QueryRunner, frame: DataFrame, mode: str, folder: Path) -> None:
    runner.drain(frame, Sink(folder / "out", mode))
    storage = LocalStorage(runner.location)
    log = SparkLog(storage)
    conf = log.offsets(log.batches(BatchLog.OFFSETS)[0]).conf
    planned = plan_query(frame, mode, conf)
    there = {name: storage.read(name) for name in files_below(storage, "state")}
    schemas = {name: with_nullable_columns(data, name) for name, data in there.items() if name.endswith("/schema")}
    there |= schemas  # which columns may be null depends on the input of the first batch
    ours, theirs = normalized(planned.files_in(str(runner.location), 0)), normalized(there)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].decode("latin-1") == theirs[name].decode("latin-1"), name
    recorded = spark_batch_of(CheckpointLocation.open(str(runner.location)).find().metadata).meaning
    assert recorded is not None
    assert QueryMeaning.decode(recorded) == planned.meaning


def normalized(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files without the random parts of their names, which operator metadata repeats."""
    return {
        _UUID.sub("id", name): _UUID.sub("id", data.decode("latin-1")).encode("latin-1") for name, data in files.items()
    }


def feeds_of(runner: QueryRunner) -> tuple[Feed, Feed]:
    feeds = runner.feed("a", SCHEMA), runner.feed("b", SCHEMA)
    for feed in feeds:
        for batch in events(random.Random(7), batches=2):
            feed.drop(batch)
    return feeds


@pytest.mark.parametrize("kind", KINDS)
def test_a_planned_query_is_that_of_a_start(
    runner: QueryRunner, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    plan, mode = KINDS[kind]
    first, second = feeds_of(runner)
    checked(runner, plan(first.stream(spark), second.stream(spark)), mode, tmp_path)


@needs_rows
def test_a_planned_processor_is_that_of_a_start(runner: QueryRunner, spark: SparkSession, tmp_path: Path) -> None:
    rows = feeds_of(runner)[0].stream(spark).groupBy("key")
    checked(runner, rows.transformWithState(RememberingRows(), COUNTS, "update", "none"), "update", tmp_path)
