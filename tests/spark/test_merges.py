"""Deltas of a state that is large enough are merged, in memory and in files, and all readers understand them."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_ckpt.features import Feature
from tests.spark.large_count import LargeCount, changed_keys
from tests.support.checkpoints import committed_batches
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import assert_same_rows

BATCHES, MAX_DELTAS = 24, 8


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


@pytest.mark.long
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
    expected = {batch: len(changed_keys(batch)) for batch in range(first, last + 1)}
    assert {row.batch_id: row["count"] for row in feed} == expected
    if retained < BATCHES:
        with pytest.raises(Py4JJavaError, match="went into a base or into merged deltas"):
            changes.options(changeStartBatchId=1).load(str(runner.location)).collect()
    else:
        job.finish()
