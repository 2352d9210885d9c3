"""Rollback, savepoint, restore and rescale of a query that reads Kafka: it reads on from the checkpoint's offsets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_ckpt import read_state
from spark_ckpt.operations.offsets import move_offsets
from spark_ckpt.operations.rescale import rescale
from spark_ckpt.operations.restore import restore
from spark_ckpt.operations.savepoint import take_savepoint
from spark_ckpt.storage import LocalStorage
from tests.spark.kafka_count import ROWS, KafkaCount
from tests.support.checkpoints import CheckpointJudge, committed_batches, completed_checkpoints
from tests.support.cli import run
from tests.support.events import SCHEMA
from tests.support.provider import ProviderUnderTest
from tests.support.runner import QueryRunner
from tests.support.sinks import BatchLog
from tests.support.topics import Topic, unique_name


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


def test_records_are_read_again_and_skipped(kafka_count: KafkaCount, judge: CheckpointJudge) -> None:
    """The broker says where the topic begins and ends. The state stays, so a record that is read again counts again."""

    def move(time: str) -> int:
        options = ("--to", time, "--kafka", kafka_count.topic.servers, "--force", "--json")
        return int(run("offsets", kafka_count.location, *options).json["batches"])

    first = kafka_count.send()
    kafka_count.drain()
    assert move("earliest") == 2
    kafka_count.drain()
    kafka_count.expected += first
    kafka_count.send(is_expected=False)
    assert move("latest") == 1
    kafka_count.send()
    kafka_count.drain()
    totals: dict[object, tuple[int, int]] = {}
    for _, key, value in kafka_count.expected:
        number, total = totals.get(key, (0, 0))
        totals[key] = (number + 1, total + int(str(value)))
    rows = read_state(str(kafka_count.location)).to_arrow().to_pylist()
    assert {each["key"]["key"]: tuple(each["value"].values()) for each in rows} == totals
    judge.check(kafka_count.location, all_retained=False)


def test_another_topic_continues_the_state(kafka_count: KafkaCount, judge: CheckpointJudge) -> None:
    kafka_count.send()
    kafka_count.drain()
    other = Topic(kafka_count.topic.servers, SCHEMA, unique_name("other")).create(3)
    position = json.dumps({other.name: {str(partition): 0 for partition in range(3)}})
    moved = move_offsets(LocalStorage(kafka_count.location), {"0": position}, force=True)
    assert moved.batches == 2
    kafka_count.topic = other
    kafka_count.send()
    kafka_count.drain()
    assert kafka_count.counted() == len(kafka_count.expected)
    judge.check(kafka_count.location, all_retained=False)
