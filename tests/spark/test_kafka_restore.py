"""The main job's queries from Kafka topics to topics and to Delta, under kills of the driver and of the broker."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.kafka_main_job import KafkaMainJob
from tests.support.checkpoints import CheckpointJudge
from tests.support.delta import needs_delta
from tests.support.kafka import KafkaBroker
from tests.support.provider import ProviderUnderTest

CHUNKS_PER_KILL = 3  # more records than a query may leave unread: the first batch is done before a kill


@pytest.fixture
def main_job(
    kafka: KafkaBroker, tmp_path: Path, provider: ProviderUnderTest, rng: random.Random, kills: int
) -> Iterator[KafkaMainJob]:
    """The main job on topics of this test, not yet started."""
    job = KafkaMainJob(kafka, tmp_path, provider, rng, chunks=CHUNKS_PER_KILL * (kills + 1))
    yield job
    job.stop()


@pytest.mark.slow
@needs_delta
@pytest.mark.long
@pytest.mark.parametrize("kills", [1, 2])
def test_driver_killed_in_the_middle_of_batches(
    main_job: KafkaMainJob, judge: CheckpointJudge, provider: ProviderUnderTest, kills: int
) -> None:
    """SIGKILL of the driver with its JVM and the coordinator, while partitions are added to a topic."""
    if provider.name == "hdfs":
        pytest.skip("Spark runs transformWithState with its RocksDB provider or ours")
    for kill in range(1, kills + 1):
        job = main_job.start()
        main_job.send(CHUNKS_PER_KILL - 1)
        main_job.await_read(job, records=100)
        if kill == kills:
            main_job.inputs[0].add_partitions(3)
        main_job.send(1)
        interrupted = main_job.kill_in_a_batch(job)
        print(f"killed in a batch of {', '.join(interrupted)}")
        assert interrupted
    job = main_job.start()
    main_job.send(CHUNKS_PER_KILL)
    main_job.finish(job, judge.check)
    assert {record.partition for record in main_job.inputs[0].records()} == {0, 1, 2}
