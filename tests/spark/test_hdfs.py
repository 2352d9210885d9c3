"""A query with its checkpoint location on HDFS, which the coordinator reaches through the driver."""

from __future__ import annotations

import random

import pytest

from tests.spark.jobs.running_count import GATE, waiting
from tests.support.checkpoints import log_records
from tests.support.feeds import at
from tests.support.hdfs import Hdfs
from tests.support.jobs import Jobs, with_duplicates
from tests.support.provider import CKPT_PREFIX

FILES_OF_EXECUTORS = f"{CKPT_PREFIX}ackThreshold=0"
"""Setting with which executors write all of their state to files, and thus to HDFS."""


@pytest.mark.long
def test_a_driver_killed_on_hdfs(jobs: Jobs, rng: random.Random, hdfs: Hdfs) -> None:
    """SIGKILL of driver, JVM and side process at once; the next driver continues, with no row lost or counted twice."""
    location = hdfs.new_location()
    storage = hdfs.storage(location)
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, 6)
    batches[3].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    first = jobs.start(location=location, conf=FILES_OF_EXECUTORS, gate=gate)
    assert first.await_(waiting(gate).exists), first.output()[-6000:]
    first.kill()
    gate.touch()
    second = jobs.start(location=location, gate=gate)
    assert second.wait() == 0, second.output()[-6000:]
    hdfs.copy(location, jobs.location)
    jobs.finish(second)
    if jobs.provider.is_ours:
        claims = [record for record in log_records(jobs.location) if record["kind"] == "claim"]
        assert [claim["generation"] for claim in claims] == [1, 2]
        assert any(file.name.startswith("delta-") for file in storage.list("ckpt/shared"))
