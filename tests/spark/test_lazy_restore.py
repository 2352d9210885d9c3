"""Restarts of a large state with a batch that touches little of it, much of it, or nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from spark_ckpt.checkpoint.chains import all_entries
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.format.segment_flags import ORDERED
from spark_ckpt.location.listing import list_completed
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.storage import LocalStorage
from tests.support.feeds import Feed
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows

KEYS = 525_000
"""More than the 500,000 keys of a partition from which a restore is lazy."""

KEY_BYTES = 8
"""Fewest bytes per key of a load of everything: compressed with LZ4."""

Start = Callable[[int], tuple[int, int]]
"""A start of the query on batches of new input: bytes that its first batch has restored, and rows after it."""


def counts(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(sf.count("*").alias("n"), sf.sum("value").alias("total"))


def drained(spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog) -> StreamingQuery:
    query = runner.start(counts(feed.stream(spark)), sink)
    query.processAllAvailable()
    query.stop()
    return query


@pytest.fixture
def feed(spark: SparkSession, runner: QueryRunner, provider: ProviderUnderTest) -> Feed:
    """Feed of the query, with the large first batch."""
    if not provider.is_ours:
        pytest.skip("about our restarts")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    spark.conf.set(CKPT_PREFIX + "maxParallelism", "256")
    feed = runner.feed("rows", "key LONG, value LONG")
    feed.drop([(key, 1) for key in range(KEYS)])
    return feed


@pytest.fixture
def sink(tmp_path: Path) -> BatchLog:
    return BatchLog(tmp_path / "out", "update")


@pytest.fixture
def start(spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog) -> Start:
    def run(batches: int) -> tuple[int, int]:
        query = drained(spark, runner, feed, sink)
        first, *others = [p.stateOperators[0] for p in query.recentProgress if p.numInputRows]
        assert len(others) == batches - 1
        return first.customMetrics["ckptRestoredBytes"], first.numRowsTotal

    return run


def finish(spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog) -> None:
    expected = [tuple(row) for row in counts(feed.table(spark)).collect()]
    assert_same_rows(runner.finish(sink), expected)


def test_a_batch_with_few_keys_restores_little(
    spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog, start: Start
) -> None:
    """Key groups of three keys, then those of others and the rest, then everything at once."""
    assert start(1) == (0, KEYS)
    state = sum(file.stat().st_size for file in (runner.location / "ckpt" / "shared").iterdir())
    assert state > KEYS * KEY_BYTES
    feed.drop([(1, 5), (2, 5), (KEYS, 5)])
    restored, rows = start(1)
    assert 0 < restored < state / 16
    assert rows == KEYS + 1
    feed.drop([(3, 5)])
    feed.drop([(key, 7) for key in range(0, KEYS, 5)])
    restored, rows = start(2)
    assert 0 < restored < state / 16
    assert rows == KEYS + 1
    feed.drop([(key, 9) for key in range(1, KEYS, 50)])
    restored, rows = start(1)
    assert restored > state * 0.9
    finish(spark, runner, feed, sink)


@pytest.mark.parametrize("codec", ["lz4", pytest.param("none", marks=pytest.mark.long)])
def test_starts_in_sequence_look_rows_up_in_the_base_below_the_deltas(
    spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog, start: Start, rng: random.Random, codec: str
) -> None:
    """Each start touches keys of the base, of deltas and new ones, in most key groups."""
    spark.conf.set(CKPT_PREFIX + "compression", codec)
    earlier = list(range(50))
    start(1)
    newest = list_completed(LocalStorage(runner.location)).records[-1]
    bases = list(all_entries(read_checkpoint(LocalStorage(runner.location), newest).table))
    assert all(base.has(ORDERED) for base in bases)
    state = sum(base.size for base in bases)
    for _ in range(4):
        keys = [*rng.choices(earlier, k=50), *(rng.randrange(KEYS * 11 // 10) for _ in range(900))]
        earlier += keys
        feed.drop([(key, 3) for key in keys])
        rows_before = len({key for key in earlier if key >= KEYS})
        restored, rows = start(1)
        assert rows == KEYS + rows_before
        # Most key groups are checked, and each lookup reads 8 KiB, or a few chunks. A load of everything reads the
        # state once.
        assert state * 1.1 < restored < state * (2 if codec == "none" else 3)
    finish(spark, runner, feed, sink)


@pytest.mark.long
def test_an_eager_start_restores_everything(
    spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog, start: Start
) -> None:
    start(1)
    spark.conf.set(CKPT_PREFIX + "restore", "eager")
    feed.drop([(1, 5)])
    restored, rows = start(1)
    assert restored > KEYS * KEY_BYTES
    assert rows == KEYS
    finish(spark, runner, feed, sink)


@pytest.mark.long
def test_the_first_batch_after_a_rescale_counts_the_rows(
    spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog, start: Start
) -> None:
    """A rescale estimates the rows of each partition, and the load counts them."""
    start(1)
    rescale(LocalStorage(runner.location), 2, force=True)
    feed.drop([(1, 5), (KEYS, 5)])
    restored, rows = start(1)
    assert restored > KEYS * KEY_BYTES
    assert rows == KEYS + 1
    feed.drop([(2, 5)])
    restored, rows = start(1)
    assert 0 < restored < KEYS
    assert rows == KEYS + 1
    finish(spark, runner, feed, sink)


def test_damage_outside_the_rows_of_a_batch_rolls_the_query_back(
    spark: SparkSession, runner: QueryRunner, feed: Feed, sink: BatchLog, start: Start
) -> None:
    """The first batch needs no row of the damaged block, but loads all deltas."""
    for key, value in {"onDamage": "rollBack", "retained": "6", "inlineThreshold": "0"}.items():
        spark.conf.set(CKPT_PREFIX + key, value)
    start(1)
    feed.drop([(key, 7) for key in range(0, KEYS, 10)])
    start(1)
    delta = max((runner.location / "ckpt" / "shared").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    data = bytearray(delta.read_bytes())
    data[-1] ^= 1
    delta.write_bytes(data)
    feed.drop([(1, 5)])
    feed.drop([(2, 5)])
    with pytest.raises(StreamingQueryException, match=f"RolledBackError[^$]*{delta.name}"):
        start(2)
    batches = [p.batchId for p in drained(spark, runner, feed, sink).recentProgress if p.numInputRows]
    assert batches[0] == 1, "the query did not go back to the batch before the damage"
    finish(spark, runner, feed, sink)
