"""Deltas of a state that is large enough are merged, in memory and in files, and all readers understand them."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_ckpt.checkpoint.load import CheckpointState, read_checkpoint
from spark_ckpt.features import Feature
from spark_ckpt.location.listing import list_completed
from spark_ckpt.storage import LocalStorage
from tests.support.checkpoints import committed_batches
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog, assert_same_rows

KEYS, CHANGED, BATCHES, MAX_DELTAS = 12_000, 300, 24, 8


class LargeCount:
    """A count over many keys; each batch after the first changes a few of them."""

    def __init__(self, spark: SparkSession, runner: QueryRunner, tmp_path: Path) -> None:
        self._spark, self._runner = spark, runner
        self._feed = runner.feed("rows", "key STRING, value INT")
        self._sink = BatchLog(tmp_path / "out", "update")
        self._dropped = 0

    def run(self, batches: int) -> None:
        """Runs the query on that many batches of new input, and stops it."""
        for _ in range(batches):
            keys = range(KEYS) if not self._dropped else range(self._dropped * 7, KEYS, KEYS // CHANGED)
            self._feed.drop([(f"key-{key}", self._dropped) for key in keys])
            self._dropped += 1
        self._runner.drain(self._plan(self._feed.stream(self._spark)), self._sink)

    def newest(self) -> CheckpointState:
        """The newest checkpoint."""
        storage = LocalStorage(self._runner.location)
        return read_checkpoint(storage, list_completed(storage).records[-1])

    def spans(self) -> list[int]:
        """Numbers of versions that the deltas of the newest checkpoint cover."""
        chains = [chain for chains in self.newest().table.values() for chain in chains]
        return [entry.covers for chain in chains for entry in chain.entries]

    def longest_chain(self) -> int:
        """Largest number of segments that a store would load now."""
        return max(len(chain.entries) for chains in self.newest().table.values() for chain in chains)

    def expected(self) -> list[tuple[object, ...]]:
        """The batch answer."""
        return [tuple(row) for row in self._plan(self._feed.table(self._spark)).collect()]

    def finish(self) -> None:
        """Asserts that the result and the location are right."""
        assert_same_rows(self._runner.finish(self._sink), self.expected())

    def _plan(self, frame: DataFrame) -> DataFrame:
        return frame.groupBy("key").agg(sf.count("*").alias("count"), sf.sum("value").alias("sum"))


@pytest.fixture
def job(spark: SparkSession, runner: QueryRunner, tmp_path: Path, provider: ProviderUnderTest) -> LargeCount:
    if not provider.is_ours:
        pytest.skip("about our checkpoints")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", str(MAX_DELTAS))
    return LargeCount(spark, runner, tmp_path)


@pytest.mark.parametrize("threshold", ["0", pytest.param("1m", marks=pytest.mark.long)])
def test_a_query_with_merged_deltas_has_the_batch_answer_and_continues(
    job: LargeCount, spark: SparkSession, threshold: str
) -> None:
    spark.conf.set(CKPT_PREFIX + "ackThreshold", threshold)
    job.run(BATCHES // 2)
    job.run(BATCHES // 2)
    assert max(job.spans()) > 2, job.spans()
    assert job.longest_chain() <= MAX_DELTAS + 4
    batch = job.newest().batch
    assert batch is not None
    assert Feature.MERGED_DELTAS.value.encode() in batch.encode()
    job.finish()


@pytest.mark.parametrize("retained", [3, pytest.param(BATCHES, marks=pytest.mark.long)])
def test_readers_understand_merged_deltas(
    job: LargeCount, spark: SparkSession, runner: QueryRunner, retained: int
) -> None:
    """The change feed has the batches whose checkpoints are retained, and names them where it cannot go on."""
    spark.conf.set(CKPT_PREFIX + "retained", str(retained))
    job.run(BATCHES)
    assert max(job.spans()) > 2
    state = spark.read.format("statestore").load(str(runner.location))
    assert_same_rows([tuple(row) for row in state.select("key.key", "value.*").collect()], job.expected())
    last = committed_batches(runner.location)[-1]
    changes = spark.read.format("statestore").options(readChangeFeed=True, changeEndBatchId=last)
    first = 1 if retained == BATCHES else last - 1
    feed = changes.options(changeStartBatchId=first).load(str(runner.location)).groupBy("batch_id").count().collect()
    expected = {batch: len(range(batch * 7, KEYS, KEYS // CHANGED)) for batch in range(first, last + 1)}
    assert {row.batch_id: row["count"] for row in feed} == expected
    if retained < BATCHES:
        with pytest.raises(Py4JJavaError, match="went into a base or into merged deltas"):
            changes.options(changeStartBatchId=1).load(str(runner.location)).collect()
    else:
        job.finish()
