"""Rollback, savepoint, restore and rescale of a query that reads Kafka: it reads on from the checkpoint's offsets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.storage import LocalStorage
from tests.spark.kafka_count import ROWS, KafkaCount
from tests.support.checkpoints import CheckpointJudge, committed_batches, completed_checkpoints
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has checkpoints")


def test_a_rollback_reads_the_records_again(kafka_count: KafkaCount) -> None:
    """After a rollback, the records since the checkpoint are read again, those of new partitions included."""
    kafka_count.send()
    kafka_count.drain()
    kafka_count.topic.add_partitions(3)
    for _ in range(2):
        kafka_count.send()
        kafka_count.drain()
    kafka_count.roll_back(0)
    assert committed_batches(kafka_count.location) == [0]
    kafka_count.send()
    kafka_count.drain()
    assert committed_batches(kafka_count.location) == [0, 1], "all records since the checkpoint are one batch"
    kafka_count.is_right()


def test_a_rollback_behind_the_retention_of_the_topic(kafka_count: KafkaCount) -> None:
    """The records after an older checkpoint may be gone: the query fails with Spark's error and changes nothing."""
    for _ in range(3):
        kafka_count.send([0])
        kafka_count.drain()
    kafka_count.roll_back(0)
    kafka_count.topic.delete_records(before=2 * ROWS)
    before = completed_checkpoints(kafka_count.location)
    with pytest.raises(StreamingQueryException, match="set the source option failOnDataLoss to false"):
        kafka_count.drain()
    assert completed_checkpoints(kafka_count.location) == before
    del kafka_count.expected[ROWS : 2 * ROWS]
    kafka_count.drain(failOnDataLoss=False)
    kafka_count.is_right()


def test_a_query_restored_from_a_savepoint_and_the_original_both_read_on(
    kafka_count: KafkaCount, spark: SparkSession, tmp_path: Path, judge: CheckpointJudge
) -> None:
    kafka_count.send()
    kafka_count.drain()
    savepoint = LocalStorage(tmp_path / "savepoint")
    take_savepoint(LocalStorage(kafka_count.location), savepoint)
    fork = QueryRunner(spark, tmp_path / "fork", judge)
    restore(savepoint, LocalStorage(fork.location))
    shutil.copytree(tmp_path / "out", tmp_path / "fork" / "out")
    kafka_count.topic.add_partitions(3)
    kafka_count.send()
    kafka_count.drain()
    kafka_count.is_right()
    kafka_count.runner, kafka_count.sink = fork, BatchLog(tmp_path / "fork" / "out", "update")
    kafka_count.send()
    kafka_count.drain()
    kafka_count.is_right()


def test_a_rescaled_query_reads_on(kafka_count: KafkaCount) -> None:
    """The number of state partitions is independent of the number of partitions of the topic."""
    for partitions in (5, 2):
        kafka_count.send()
        kafka_count.drain()
        rescale(LocalStorage(kafka_count.location), partitions, force=True)
    kafka_count.topic.add_partitions(4)
    kafka_count.send()
    kafka_count.drain()
    kafka_count.is_right()
