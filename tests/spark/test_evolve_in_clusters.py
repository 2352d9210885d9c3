"""A changed query continues on a real standalone cluster, and on HDFS, where executors load the converted state."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.events import events
from tests.support.hdfs import Hdfs
from tests.support.jobs import Jobs
from tests.support.provider import ProviderUnderTest
from tests.support.standalone_cluster import StandaloneCluster

JOB = "evolving_count.py"


@pytest.fixture(autouse=True)
def ours(provider: ProviderUnderTest) -> None:
    if not provider.is_ours:
        pytest.skip("only our provider has state that evolves")


def changed_in_the_middle(jobs: Jobs, rng: random.Random, location: str, **options: Any) -> None:
    batches = events(rng, batches=4, per_batch=60, keys=30)
    for batch in batches[:2]:
        jobs.feed.drop(batch)
    first = jobs.start(script=JOB, location=location, **options)
    assert first.wait() == 0, first.output()[-6000:]
    for batch in batches[2:]:
        jobs.feed.drop(batch)
    second = jobs.start(script=JOB, name="changed", location=location, evolve="", **options)
    assert second.wait() == 0, second.output()[-6000:]
    want: dict[object, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for number, batch in enumerate(batches):
        for _, key, value in batch:
            total, count = want[key]
            want[key] = (total + (int(str(value)) if number > 1 else 0), count + 1)
    touched = {key for batch in batches[2:] for _, key, _ in batch}
    got = {row[0]: tuple(row[1:]) for row in jobs.sink.rows() if row[0] in touched}
    assert got == {key: want[key] for key in touched}


def test_on_a_standalone_cluster(jobs: Jobs, rng: random.Random, tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        changed_in_the_middle(jobs, rng, str(jobs.location), master=cluster.url)
    jobs.judge.check(jobs.location, all_retained=False)


def test_on_hdfs(jobs: Jobs, rng: random.Random, hdfs: Hdfs) -> None:
    location = hdfs.new_location()
    changed_in_the_middle(jobs, rng, location)
    hdfs.copy(location, jobs.location)
    jobs.judge.check(jobs.location, all_retained=False)
