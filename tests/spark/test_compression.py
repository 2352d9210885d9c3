"""Compressed state is read by every reader, and a query may change the codec at each start."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_ckpt import read_state
from spark_ckpt.checkpoint.chains import all_entries
from spark_ckpt.config import COMPRESSION
from spark_ckpt.features import Feature
from spark_ckpt.format.segment_flags import COMPRESSED
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.verify import verify
from spark_ckpt.storage import LocalStorage
from tests.spark.large_count import LargeCount
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import assert_same_rows


@pytest.fixture
def job(spark: SparkSession, runner: QueryRunner, tmp_path: Path, provider: ProviderUnderTest) -> LargeCount:
    if not provider.is_ours:
        pytest.skip("about our formats")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set(CKPT_PREFIX + "chain.maxDeltas", "8")
    spark.conf.set(CKPT_PREFIX + "maxParallelism", "16")
    return LargeCount(spark, runner, tmp_path)


def compressed(job: LargeCount) -> set[bool]:
    """Whether segments of the newest checkpoint are compressed."""
    return {entry.has(COMPRESSED) for entry in all_entries(job.newest().table)}


def state_bytes(job: LargeCount) -> int:
    """Bytes of all segments of the newest checkpoint."""
    return sum(entry.size for entry in all_entries(job.newest().table))


def test_a_query_continues_under_each_codec(job: LargeCount, spark: SparkSession, runner: QueryRunner) -> None:
    spark.conf.set(COMPRESSION.key, "none")
    job.run(3)
    plain = state_bytes(job)
    assert compressed(job) == {False}
    spark.conf.unset(COMPRESSION.key)
    job.run(3)
    assert compressed(job) == {False, True}, "a base without compression, and deltas with LZ4, the default"
    batch = job.newest().batch
    assert batch is not None and Feature.COMPRESSED_BLOCKS.value.encode() in batch.encode()
    spark.conf.set(COMPRESSION.key, "zstd")
    job.run(12)
    assert max(job.spans()) > 1, "no merge of compressed deltas"
    storage = LocalStorage(runner.location)
    assert verify(storage, everything=True).is_whole
    in_the_jvm = spark.read.format("statestore").load(str(runner.location)).select("key.key", "value.*").collect()
    assert_same_rows([tuple(row) for row in in_the_jvm], job.expected())
    in_python = read_state(str(runner.location)).to_arrow().to_pylist()
    assert_same_rows([(row["key"]["key"], *row["value"].values()) for row in in_python], job.expected())
    rescale(storage, 3, force=True)
    job.run(1)
    assert state_bytes(job) < plain
    spark.conf.set(COMPRESSION.key, "none")
    job.run(2)
    job.finish()
