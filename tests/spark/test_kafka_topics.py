"""Queries whose topic changes under them: new partitions, a broker that is away, lost records, a topic made anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from tests.spark.kafka_count import ROWS, KafkaCount
from tests.support.checkpoints import committed_batches, completed_checkpoints
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest

AWAY_SECONDS = 20.0

DATA_LOSS = "set the source option failOnDataLoss to false"
"""Part of Spark's error of a query that misses records."""


def checkpoints(location: Path, provider: ProviderUnderTest) -> list[int]:
    """Retained checkpoints of our provider; batches of another one."""
    return completed_checkpoints(location) if provider.is_ours else committed_batches(location)


def test_partitions_are_added_while_the_query_runs(kafka_count: KafkaCount) -> None:
    """Spark looks for new partitions before each batch and reads them from their beginning."""
    kafka_count.send()
    with kafka_count.running() as query:
        kafka_count.await_result(query)
        for total in (3, 5):
            kafka_count.topic.add_partitions(total)
            kafka_count.send()
            kafka_count.send([total - 1])
            kafka_count.await_result(query)
    kafka_count.is_right()


def test_partitions_are_added_while_the_query_is_down(kafka_count: KafkaCount) -> None:
    kafka_count.send()
    kafka_count.drain()
    kafka_count.topic.add_partitions(4)
    kafka_count.send()
    kafka_count.drain(startingOffsets="latest")  # a setting for the first start only, even for new partitions
    kafka_count.is_right()


@pytest.mark.long
def test_the_broker_is_away_for_twenty_seconds(kafka_count: KafkaCount, kafka: KafkaBroker) -> None:
    """SIGKILL of the broker while a query reads: the same run continues when the broker is back."""
    for _ in range(4):
        kafka_count.send()
    with kafka_count.running(maxOffsetsPerTrigger=ROWS) as query:
        kafka_count.runner.await_(lambda: kafka_count.counted() >= ROWS, query=query)
        kafka.restart(AWAY_SECONDS)
        kafka_count.send()
        kafka_count.await_result(query)
    kafka_count.is_right()


def test_the_broker_hangs(kafka_count: KafkaCount, kafka: KafkaBroker) -> None:
    """SIGSTOP of the broker: connections stay open, and requests go unanswered."""
    for _ in range(4):
        kafka_count.send()
    with kafka_count.running(maxOffsetsPerTrigger=ROWS) as query:
        kafka_count.runner.await_(lambda: kafka_count.counted() >= ROWS, query=query)
        kafka.freeze(5.0)
        kafka_count.await_result(query)
    kafka_count.is_right()


def test_records_lost_to_retention_fail_the_query(kafka_count: KafkaCount, provider: ProviderUnderTest) -> None:
    """With `failOnDataLoss`, the default, Spark's error ends the query, and its checkpoint remains.

    Without it, the same location continues with the records that are left.
    """
    kafka_count.send([0])
    kafka_count.drain()
    before = checkpoints(kafka_count.location, provider)
    lost = kafka_count.send([0], is_expected=False)
    kept = kafka_count.send([0])
    kafka_count.topic.delete_records(before=ROWS + len(lost))
    with pytest.raises(StreamingQueryException, match=DATA_LOSS):
        kafka_count.drain()
    assert checkpoints(kafka_count.location, provider) == before
    kafka_count.drain(failOnDataLoss=False)
    assert kafka_count.counted() == ROWS + len(kept)
    kafka_count.is_right()


def test_a_topic_made_anew_with_fewer_records(kafka_count: KafkaCount, provider: ProviderUnderTest) -> None:
    """Spark finds that the topic ends before the position: an error, or all records up to the new end are skipped."""
    kafka_count.send([0])
    kafka_count.drain()
    before = checkpoints(kafka_count.location, provider)
    kafka_count.topic.delete()
    kafka_count.topic.create(2)
    kafka_count.send([0], count=ROWS // 2, is_expected=False)
    with pytest.raises(StreamingQueryException, match=DATA_LOSS):
        kafka_count.drain()
    assert checkpoints(kafka_count.location, provider) == before
    kafka_count.drain(failOnDataLoss=False)
    kafka_count.send([0])
    kafka_count.drain(failOnDataLoss=False)
    kafka_count.is_right()


def test_a_topic_made_anew_with_more_records(kafka_count: KafkaCount) -> None:
    """Spark takes the old position in the new topic, and does not notice that the records before it are lost."""
    kafka_count.send([0])
    kafka_count.drain()
    kafka_count.topic.delete()
    kafka_count.topic.create(2)
    kafka_count.send([0], is_expected=False)
    kafka_count.send([0])
    kafka_count.drain()
    kafka_count.is_right()
