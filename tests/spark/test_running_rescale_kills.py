"""Drivers that die in the first batch with another number of partitions: the next one repeats that batch with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.location.rescale_request import RescaleRequest, create_request, delete_request, read_request
from spark_ckpt.spark_files.logs import SparkBatches, SparkLog
from spark_ckpt.storage import LocalStorage
from tests.support.jobs import Jobs, with_duplicates
from tests.support.provider import ProviderUnderTest

BATCHES = 40
CHAIN = (5, 2, 4)
"""Queries start with 3 partitions."""


def begins(location: Path, partitions: int) -> Callable[[], bool]:
    """True once a batch with this number has begun, and none with it is committed."""
    log = SparkLog(LocalStorage(location))

    def has_begun() -> bool:
        batches = SparkBatches.of(log)
        if not batches.committed or batches.started[-1] == batches.last_committed:
            return False
        return log.offsets(batches.started[-1]).shuffle_partitions == partitions

    return has_begun


@pytest.mark.parametrize("checkpoint_format", [pytest.param(1, marks=pytest.mark.long), 2])
def test_kills_amid_the_first_batch(
    checkpoint_format: int, jobs: Jobs, rng: random.Random, provider: ProviderUnderTest
) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider's checkpoints can be rescaled by metadata")
    conf = [f"spark.sql.streaming.stateStore.checkpointFormatVersion={checkpoint_format}"]
    for batch in with_duplicates(rng, BATCHES):
        jobs.feed.drop(batch)
    storage, found = LocalStorage(jobs.location), []
    for number in CHAIN:
        driver = jobs.start(f"to-{number}", conf=conf)
        assert driver.await_batches(1), driver.output()[-6000:]
        assert create_request(storage, RescaleRequest(number, 0))
        assert driver.await_(begins(jobs.location, number)), driver.output()[-6000:]
        driver.kill()
        batches = SparkBatches.of(SparkLog(storage))
        found.append((number, batches.started[-1] - batches.last_committed))
        delete_request(storage)
    assert found == [(number, 1) for number in CHAIN], "each driver died amid the first batch with its number"
    last = jobs.start("last", conf=conf)
    assert create_request(storage, RescaleRequest(6, 0))
    jobs.finish(last)
    answered = read_request(storage)
    assert answered is not None
    assert answered.answer is not None
    assert answered.answer.before == CHAIN[-1]
    assert SparkLog(storage).offsets(BATCHES - 1).shuffle_partitions == 6
