"""Queries with the non-default stores of completed checkpoints."""

from __future__ import annotations

import random
import uuid

import pytest
from pyspark.sql import SparkSession

from spark_ckpt.location.listing import scan
from spark_ckpt.storage import LocalStorage
from tests.spark.jobs.running_count import FAILED, GATE, waiting
from tests.support.checkpoints import committed_batches, log_records
from tests.support.feeds import at
from tests.support.jobs import Jobs, with_duplicates
from tests.support.provider import CKPT_PREFIX, ProviderUnderTest
from tests.support.sinks import BatchLog, assert_same_rows
from tests.support.zookeeper import ZooKeeperServer


@pytest.fixture(autouse=True)
def _only_ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("Spark's own providers have no completed-checkpoint store")


@pytest.fixture
def zookeeper_conf(zookeeper: ZooKeeperServer) -> list[str]:
    """Settings of the store `zookeeper`, with a root node for this test alone."""
    settings = {
        "store": "zookeeper",
        "zookeeper.quorum": zookeeper.quorum,
        "zookeeper.sessionTimeout": "240s",  # outlasts any stall of the machine
        "zookeeper.path": f"/{uuid.uuid4().hex}",
    }
    return [f"{CKPT_PREFIX}{key}={value}" for key, value in settings.items()]


@pytest.mark.long
def test_standalone_restarts_after_a_kill(jobs: Jobs, rng: random.Random, spark: SparkSession) -> None:
    """Without a log, the next driver and the `statestore` reader find the checkpoints by reading them."""
    conf = f"{CKPT_PREFIX}store=standalone"
    for batch in with_duplicates(rng, 6):
        jobs.feed.drop(batch)
    job = jobs.start(conf=conf)
    assert job.await_batches(2), job.output()[-6000:]
    job.kill()
    again = jobs.start(conf=conf)
    assert again.wait() == 0, again.output()[-6000:]
    assert_same_rows(BatchLog(jobs.folder / "out", "update").rows(), jobs.answer())
    found = scan(LocalStorage(jobs.location))
    assert found.damaged == ()
    assert {record.batch_id for record in found.records} == set(committed_batches(jobs.location))
    assert log_records(jobs.location) == []
    state = spark.read.format("statestore").option("operatorId", 0).load(str(jobs.location))
    columns = state.select("key.key", "value.count", "value.sum")
    assert_same_rows([tuple(row) for row in columns.collect()], jobs.answer())


@pytest.mark.long
def test_zookeeper_restarts_after_a_kill(jobs: Jobs, rng: random.Random, zookeeper_conf: list[str]) -> None:
    for batch in with_duplicates(rng, 6):
        jobs.feed.drop(batch)
    job = jobs.start(conf=zookeeper_conf)
    assert job.await_batches(2), job.output()[-6000:]
    job.kill()
    jobs.finish(jobs.start(conf=zookeeper_conf))


@pytest.mark.long
def test_zookeeper_lets_a_second_driver_take_over(
    jobs: Jobs, rng: random.Random, zookeeper_conf: list[str], zookeeper: ZooKeeperServer
) -> None:
    """The first driver is alive and held in a batch. It completes nothing more, and names its successor."""
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, 5)
    batches[2].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    first = jobs.start(name="first", gate=gate, conf=zookeeper_conf)
    assert first.await_(waiting(gate).exists), first.output()[-6000:]
    second = jobs.start(name="second", conf=zookeeper_conf)
    jobs.finish(second)
    records = log_records(jobs.location)
    gate.touch()
    assert first.wait() == FAILED, first.output()[-6000:]
    for words in ("[FencedError]", f"run {records[-1]['owner']['run_id']}", "has taken over"):
        assert words in first.output(), f"no {words!r} in:\n{first.output()[-6000:]}"
    assert log_records(jobs.location) == records, "the first driver has written to the log of the second"
    root = zookeeper_conf[-1].partition("=")[2]
    with zookeeper.client() as client:
        (query,) = client.get_children(root)
        nodes = sorted(int(name) for name in client.get_children(f"{root}/{query}/records"))
    assert nodes == [record["id"] for record in records]
