"""Stream-stream joins of every type, restarted in the middle, produce the batch answer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.join_query import LEFT, RIGHT, joined, side
from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, Rows, assert_same_rows
from tests.support.spark_version import needs_join_format

TYPES = ["inner", "left_outer", "right_outer", "full_outer", "left_semi"]
CORE, MIRRORED = {"inner", "full_outer"}, {"right_outer", "left_semi"}
TYPES_AND_MARKS = [
    pytest.param(how, marks=pytest.mark.core if how in CORE else pytest.mark.long if how in MIRRORED else ())
    for how in TYPES
]


@pytest.fixture
def two_partitions(spark: SparkSession) -> None:
    """Two partitions suffice, since a join has four stores per partition."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")


@pytest.mark.parametrize("how", TYPES_AND_MARKS)
def test_join(
    how: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path, two_partitions: None
) -> None:
    """Matched and unmatched rows are emitted once each; whether a row has matched survives a restart."""
    check_join(how, runner, spark, rng, tmp_path)


def test_join_in_old_state_format(
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    two_partitions: None,
) -> None:
    """Inner joins started by an old Spark keep state format 1, which today's Spark starts only in its own tests."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", "1")
    system = spark.sparkContext._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("spark.testing", "true")
    try:
        check_join("inner", runner, spark, rng, tmp_path)
    finally:
        system.clearProperty("spark.testing")


@pytest.mark.parametrize("how", ["left_outer", "left_semi"])
def test_other_joins_in_old_state_format_are_refused_by_spark(
    how: str, runner: QueryRunner, spark: SparkSession, tmp_path: Path, rng: random.Random
) -> None:
    """Format 1 gives wrong outer and semi joins (SPARK-26154): the user sees Spark reject them; nothing completes."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", "1")
    left, right = runner.feed("left", LEFT), runner.feed("right", RIGHT)
    left.drop(side(rng, "left")[0])
    right.drop(side(rng, "right")[0])
    with pytest.raises(StreamingQueryException, match="SPARK-26154"):
        runner.drain(joined(left.stream(spark), right.stream(spark), how), BatchLog(tmp_path / "out", "append"))
    assert not committed_batches(runner.location)
    assert not completed_checkpoints(runner.location)


@pytest.mark.parametrize("version", [pytest.param(version, marks=needs_join_format(version)) for version in (3, 4)])
def test_join_in_column_families(
    version: int,
    provider: ProviderUnderTest,
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    two_partitions: None,
) -> None:
    """In these formats both sides share one store; format 4 evicts rows in event-time order."""
    if provider.name == "hdfs":
        pytest.skip("Spark's HDFS-backed provider has no column families")
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", version)
    spark.conf.set("spark.sql.streaming.join.stateFormatV4.enabled", "true")  # Spark 4.2 restricts it to its own tests
    check_join("full_outer", runner, spark, rng, tmp_path)


@pytest.mark.parametrize("how", [pytest.param("inner", marks=pytest.mark.long), "full_outer"])
def test_join_with_state_store_checkpoint_ids(
    how: str,
    runner: QueryRunner,
    spark: SparkSession,
    rng: random.Random,
    tmp_path: Path,
    two_partitions: None,
    checkpoint_ids: None,
) -> None:
    """With unique ids enabled, each of the four stores of a partition is loaded by the id that Spark committed."""
    check_join(how, runner, spark, rng, tmp_path)


def check_join(how: str, runner: QueryRunner, spark: SparkSession, rng: random.Random, tmp_path: Path) -> None:
    """Runs one join over random rows and compares it with the batch join of the same rows."""
    left, right = runner.feed("left", LEFT), runner.feed("right", RIGHT)
    rows = runner.run(
        lambda: joined(left.stream(spark), right.stream(spark), how),
        BatchLog(tmp_path / "out", "append"),
        {left: side(rng, "left"), right: side(rng, "right")},
        cuts=(1, 3),
    )
    expected: Rows = [tuple(row) for row in joined(left.table(spark), right.table(spark), how).collect()]
    assert_same_rows(rows, expected)
