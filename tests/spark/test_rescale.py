"""Queries with a changed number of partitions between starts produce the batch answer, whatever their operator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from spark_ckpt.errors import StorageError
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.spark_files.logs import BatchLog as SparkBatchLog
from spark_ckpt.spark_files.logs import SparkLog
from spark_ckpt.storage import LocalStorage
from tests.spark.processors import COUNTS, RememberingRows, remembered
from tests.storage.faulty import FaultyStorage
from tests.support.checkpoints import committed_batches
from tests.support.events import SCHEMA, end, events, without_end
from tests.support.feeds import FAR_AHEAD, Feed, at
from tests.support.formats import mainly_with_ids
from tests.support.provider import ProviderUnderTest
from tests.support.runner import Batches, QueryRunner
from tests.support.sinks import BatchLog, Rows, Sink, assert_same_rows
from tests.support.spark_version import MINOR, needs_join_format, needs_rows, order, since

# Queries start with 3 partitions and 1536 key groups: 6 is in their chain of factors, 4 divides 1536, 5 and 7 do not.
CHAIN = (6, 4, 5, 7, 1, 3)


@pytest.fixture(autouse=True)
def ours_only(provider: ProviderUnderTest) -> None:
    """Skips Spark's own providers: only our checkpoints support this rescale."""
    if not provider.is_ours:
        pytest.skip("only our provider's checkpoints can be rescaled by metadata")


@pytest.fixture
def bases(request: pytest.FixtureRequest, spark: SparkSession) -> None:
    """With frequent bases, most subtasks have one since the last rescale; otherwise they refer to older files."""
    if request.param == "often":
        spark.conf.set("spark.sql.streaming.stateStore.ckpt.chain.maxDeltas", "1")


def run_rescaled(
    runner: QueryRunner,
    plan: Callable[[], DataFrame],
    sink: Sink,
    inputs: Mapping[Feed, Batches],
    chain: Sequence[int] = CHAIN,
) -> Rows:
    """Feeds one batch at a time, with a rescale between batches."""
    total = max(len(batches) for batches in inputs.values())
    for number in range(total):
        for feed, batches in inputs.items():
            for batch in batches[number : number + 1]:
                feed.drop(batch)
        drain(runner, plan, sink)
        if number + 1 < total:
            rescale(LocalStorage(runner.location), chain[number % len(chain)], force=True)
    return runner.finish(sink)


def drain(runner: QueryRunner, plan: Callable[[], DataFrame], sink: Sink) -> None:
    """Runs the query until it stops between two batches."""
    log = SparkLog(LocalStorage(runner.location))
    runner.drain(plan(), sink)
    while log.batches(SparkBatchLog.OFFSETS)[-1] != committed_batches(runner.location)[-1]:
        runner.drain(plan(), sink)


def parallelism(location: Path) -> list[int]:
    """Number of partitions of each store in the newest checkpoint."""
    from spark_ckpt.location.find import CheckpointLocation

    return [store.parallelism for store in CheckpointLocation.open(str(location)).checkpoints()[-1].operators]


def by_key(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(sf.count("*"), sf.sum("value"))


@pytest.mark.parametrize(
    "bases",
    [pytest.param("seldom", marks=pytest.mark.long), pytest.param("often", marks=pytest.mark.core)],
    indirect=True,
)
def test_running_aggregate(
    spark: SparkSession,
    runner: QueryRunner,
    rng: random.Random,
    tmp_path: Path,
    checkpoint_format: None,
    bases: None,
) -> None:
    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: by_key(feed.stream(spark)),
        BatchLog(tmp_path / "out", "update"),
        {feed: events(rng, 7, keys=60)},
    )
    assert_same_rows(rows, [tuple(row) for row in by_key(feed.table(spark)).collect()])
    assert parallelism(runner.location) == [CHAIN[5]]


def test_random_chains(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    """Includes several rescales without a batch in between."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    before = 3
    for batch in events(rng, 5, keys=60):
        feed.drop(batch)
        drain(runner, lambda: by_key(feed.stream(spark)), sink)
        for _ in range(rng.randrange(4)):
            before = rng.choice([p for p in range(1, 13) if p != before])
            rescale(LocalStorage(runner.location), before, force=True)
    rows = runner.finish(sink)
    assert_same_rows(rows, [tuple(row) for row in by_key(feed.table(spark)).collect()])


@pytest.mark.long
@pytest.mark.core
def test_state_reader_after_a_rescale(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """The newest state is complete with more partitions, with fewer, and with partitions that share key groups."""
    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: by_key(feed.stream(spark)),
        BatchLog(tmp_path / "out", "complete"),
        {feed: events(rng, 3, keys=60)},
    )
    for partitions in (8, 2, 5):
        rescale(LocalStorage(runner.location), partitions, force=True)
        state = spark.read.format("statestore").load(str(runner.location))
        assert_same_rows([tuple(row) for row in state.select("key.key", "value.count", "value.sum").collect()], rows)
        expected = set(range(partitions))
        assert {row.partition_id for row in state.select("partition_id").distinct().collect()} <= expected


LEFT = "left_ts timestamp, left_id long, a string"
RIGHT = "right_ts timestamp, right_id long, b string"


@mainly_with_ids
@pytest.mark.parametrize(
    ("how", "version", "stores"),
    [
        pytest.param("inner", 2, 4, marks=pytest.mark.long),
        ("full_outer", 2, 4),
        pytest.param("inner", 3, 1, marks=[needs_join_format(3), pytest.mark.long]),
        pytest.param("inner", 4, 1, marks=[needs_join_format(4), pytest.mark.long]),
    ],
)
def test_join(
    how: str,
    version: int,
    stores: int,
    spark: SparkSession,
    runner: QueryRunner,
    rng: random.Random,
    tmp_path: Path,
    checkpoint_format: None,
) -> None:
    """Joins with a store per table, and with column families of one store."""
    spark.conf.set("spark.sql.streaming.join.stateFormatVersion", version)
    spark.conf.set("spark.sql.streaming.join.stateFormatV4.enabled", "true")  # Spark 4.2 restricts it to its own tests
    left, right = runner.feed("left", LEFT), runner.feed("right", RIGHT)

    def side(name: str) -> Batches:
        rows = [
            [(at(batch * 10 + rng.randrange(10)), rng.randrange(25), f"{name}{batch}-{n}") for n in range(12)]
            for batch in range(5)
        ]
        return [*rows, [(at(FAR_AHEAD), -1 if name == "left" else -2, "end")]]

    def joined(first: DataFrame, second: DataFrame) -> DataFrame:
        bounds = (
            "left_id = right_id AND right_ts BETWEEN left_ts - INTERVAL 10 SECONDS AND left_ts + INTERVAL 25 SECONDS"
        )
        both = first.withWatermark("left_ts", "10 seconds").join(
            second.withWatermark("right_ts", "10 seconds"), sf.expr(bounds), how
        )
        return both.where(sf.coalesce("left_id", "right_id") >= 0)

    rows = run_rescaled(
        runner,
        lambda: joined(left.stream(spark), right.stream(spark)),
        BatchLog(tmp_path / "out", "append"),
        {left: side("left"), right: side("right")},
    )
    assert_same_rows(rows, [tuple(row) for row in joined(left.table(spark), right.table(spark)).collect()])
    assert parallelism(runner.location) == [CHAIN[4]] * stores


@mainly_with_ids
def test_deduplication(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: feed.stream(spark).select("key").dropDuplicates(["key"]),
        BatchLog(tmp_path / "out", "append"),
        {feed: events(rng, 5, keys=60)},
    )
    assert_same_rows(rows, list(dict.fromkeys((row[1],) for row in feed.rows())))


@pytest.mark.long
@mainly_with_ids
def test_session_windows(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    def sessions(frame: DataFrame) -> DataFrame:
        window = sf.session_window("ts", "5 seconds")
        grouped = frame.withWatermark("ts", "10 seconds").groupBy(window, "key").agg(sf.count("*").alias("n"))
        return grouped.select("session_window.start", "session_window.end", "key", "n")

    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: sessions(feed.stream(spark)),
        BatchLog(tmp_path / "out", "append"),
        {feed: [*events(rng, 5), end()]},
    )
    assert_same_rows(rows, without_end([tuple(row) for row in sessions(feed.table(spark)).collect()]))


@pytest.mark.long
@mainly_with_ids
def test_state_of_groups(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path, checkpoint_format: None
) -> None:
    """applyInPandasWithState, PySpark's form of flatMapGroupsWithState."""

    def running(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        count, total = state.getOption or (0, 0)
        for frame in frames:
            count += len(frame)
            total += int(frame["value"].sum())
        state.update((count, total))
        yield pd.DataFrame({"key": [key[0]], "n": [count], "total": [total]})

    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: (
            feed.stream(spark)
            .groupBy("key")
            .applyInPandasWithState(
                running, "key string, n long, total long", "n long, total long", "update", GroupStateTimeout.NoTimeout
            )
        ),
        BatchLog(tmp_path / "out", "update"),
        {feed: events(rng, 5, keys=30)},
    )
    assert_same_rows(rows, [tuple(row) for row in by_key(feed.table(spark)).collect()])


@needs_rows
def test_state_variables(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    """A value, a list and a map of transformWithState."""
    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: feed.stream(spark).groupBy("key").transformWithState(RememberingRows(), COUNTS, "update", "none"),
        BatchLog(tmp_path / "out", "update"),
        {feed: events(rng, 5, keys=30)},
    )
    known = remembered([[tuple(row) for row in batch] for batch in feed.batches])
    expected: Rows = [
        (key, count, str(sorted(listed)), str(sorted(mapped.items()))) for key, (count, listed, mapped) in known.items()
    ]
    assert_same_rows(rows, expected)


@pytest.mark.parametrize("first", [1, 3])
def test_an_operator_without_a_key_stays_one_task(
    first: int, spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """Also in a query with one partition, where only the schema of the operator's keys reveals it."""
    spark.conf.set("spark.sql.shuffle.partitions", str(first))
    feed = runner.feed("events", SCHEMA)

    def figures(frame: DataFrame) -> DataFrame:
        return frame.select("key", "value").agg(sf.count("*"), sf.sum("value"))

    rows = run_rescaled(
        runner,
        lambda: figures(feed.stream(spark)),
        BatchLog(tmp_path / "out", "complete"),
        {feed: events(rng, 3)},
        (4, 5),
    )
    assert_same_rows(rows, [tuple(row) for row in figures(feed.table(spark)).collect()])
    assert parallelism(runner.location) == [1]


def test_one_partition_becomes_many(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: by_key(feed.stream(spark)),
        BatchLog(tmp_path / "out", "update"),
        {feed: events(rng, 3, keys=60)},
        (4, 5),
    )
    assert_same_rows(rows, [tuple(row) for row in by_key(feed.table(spark)).collect()])
    assert parallelism(runner.location) == [5]


@since("4.2", "named sources and version 2 of the offset log")
def test_offsets_by_the_name_of_the_source(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """Version 2 of the offset log does not contain the number of partitions until the query restarts."""
    spark.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    feed = runner.feed("events", SCHEMA)
    rows = run_rescaled(
        runner,
        lambda: by_key(feed.stream(spark)),
        BatchLog(tmp_path / "out", "update"),
        {feed: events(rng, 4, keys=60)},
    )
    assert SparkLog(LocalStorage(runner.location)).offsets(0).version == 2
    assert_same_rows(rows, [tuple(row) for row in by_key(feed.table(spark)).collect()])


def test_spark_waits_for_an_interrupted_rescale(
    spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path
) -> None:
    """No batch runs on half of a rescale: Spark refuses to start the query, or we refuse the state.

    After the same rescale is repeated and completes, the query continues.
    """
    refusal = "UNFINISHED_REPARTITION" if order(MINOR) >= order("4.2") else "ParallelismChangedError"
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    first, second = events(rng, 2, keys=60)
    feed.drop(first)
    drain(runner, lambda: by_key(feed.stream(spark)), sink)
    interrupted = FaultyStorage(LocalStorage(runner.location))
    interrupted.fail("create", "ckpt/completed/")
    with pytest.raises(StorageError):
        rescale(interrupted, 5, force=True)
    feed.drop(second)
    with pytest.raises(StreamingQueryException, match=refusal):
        runner.drain(by_key(feed.stream(spark)), sink)
    rescale(LocalStorage(runner.location), 5, force=True)
    drain(runner, lambda: by_key(feed.stream(spark)), sink)
    assert_same_rows(runner.finish(sink), [tuple(row) for row in by_key(feed.table(spark)).collect()])


def test_what_is_refused(spark: SparkSession, runner: QueryRunner, rng: random.Random, tmp_path: Path) -> None:
    """More partitions than key groups, or a query stopped within a batch: rejected without any change."""
    feed = runner.feed("events", SCHEMA)
    sink = BatchLog(tmp_path / "out", "update")
    for batch in events(rng, 2):
        feed.drop(batch)
    drain(runner, lambda: by_key(feed.stream(spark)), sink)
    storage = LocalStorage(runner.location)
    files = sorted(str(file) for file in runner.location.rglob("*"))
    with pytest.raises(RescaleRefusedError, match="1536 key groups"):
        rescale(storage, 1537)
    assert sorted(str(file) for file in runner.location.rglob("*")) == files
    for log in ("commits/1", "commits/.1.crc"):
        (runner.location / log).unlink()
    with pytest.raises(RescaleRefusedError, match="batch 1 has begun but is not committed"):
        rescale(storage, 6, force=True)
    drain(runner, lambda: by_key(feed.stream(spark)), sink)
    rescale(storage, 6, force=True)
    drain(runner, lambda: by_key(feed.stream(spark)), sink)
    assert_same_rows(runner.finish(sink), [tuple(row) for row in by_key(feed.table(spark)).collect()])
