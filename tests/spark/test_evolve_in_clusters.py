"""A query is changed, edited, and moved back, on a real standalone cluster and on HDFS, where executors load the state.

The commands reach HDFS by its web address, as without a driver.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.cli import run
from tests.support.events import Event, events
from tests.support.hdfs import Hdfs
from tests.support.jobs import Jobs
from tests.support.standalone_cluster import StandaloneCluster

pytestmark = pytest.mark.usefixtures("ours_only")
JOB = "evolving_count.py"
Totals = dict[str, tuple[int, int]]
"""Sum and count of each key."""


def continues(jobs: Jobs, name: str, **options: Any) -> str:
    """Runs a driver to its end; returns what it printed."""
    job = jobs.start(script=JOB, name=name, **options)
    assert job.wait() == 0, job.output()[-6000:]
    return job.output()


def add(totals: Totals, batches: Sequence[Sequence[Event]], *, sums: bool = True) -> set[str]:
    """Adds what the query has counted of some input; returns its keys."""
    for batch in batches:
        for _, key, value in batch:
            total, count = totals[str(key)]
            totals[str(key)] = total + int(str(value)) * sums, count + 1
    return {str(key) for batch in batches for _, key, _ in batch}


def said(jobs: Jobs, keys: set[str]) -> dict[object, tuple[object, ...]]:
    """Rows of the sink with these keys."""
    return {row[0]: tuple(row[1:]) for row in jobs.sink.rows() if row[0] in keys}


def changed_in_the_middle(
    jobs: Jobs, rng: random.Random, location: str, reached: str, how: str, **options: Any
) -> None:
    """Changes a query, edits and erases keys, and lets it read its input once more, each between two drivers.

    Args:
        jobs: the drivers.
        rng: draws the input.
        location: the checkpoint location, as drivers know it.
        reached: the same location, as commands reach it.
        how: what rewrites the state, `driver` or `tasks`.
        options: options of the drivers.
    """
    options |= {"location": location}
    batches = events(rng, batches=5, per_batch=60, keys=30)
    totals: Totals = defaultdict(lambda: (0, 0))
    for batch in batches[:2]:
        jobs.feed.drop(batch)
    continues(jobs, "first", **options)
    add(totals, batches[:2], sums=False)
    for batch in batches[2:4]:
        jobs.feed.drop(batch)
    said_by = continues(jobs, "changed", evolve=how, **options)
    assert f"evolved with {2 if how == 'tasks' else 0} jobs" in said_by  # one looks for the package
    keys = add(totals, batches[2:4])
    assert said(jobs, keys) == {key: totals[key] for key in keys}

    changed, deleted, erased = rng.sample(sorted(keys), 3)
    value = json.dumps({"key": {"key": changed}, "value": dict(zip(values_of(reached), (1000, -5), strict=True))})
    key = json.dumps({"key": {"key": deleted}})
    enter("edit", reached, "--set", value, "--delete", key, "--force")
    enter("erase", reached, "--keys", json.dumps({"key": erased}), "--purge", "--force")
    enter("verify", reached, "--absent", json.dumps({"key": erased}))
    totals[changed] = 1000, -5
    del totals[deleted], totals[erased]
    enter("offsets", reached, "--source", '0={"logOffset":1}', "--force")
    jobs.feed.drop(batches[4])
    continues(jobs, "edited", **options, evolve=how)
    keys = add(totals, batches[2:])
    assert said(jobs, keys) == {key: totals[key] for key in keys}
    enter("verify", reached, "--all")


def enter(*arguments: str) -> Any:
    """What a command prints as JSON."""
    result = run(*arguments, "--json")
    assert result.status == 0, (result.stdout, result.stderr)
    return result.json


def values_of(location: str) -> list[str]:
    """Columns of the values of the state."""
    return list(enter("read", location, "--limit", "1")["rows"][0]["value"])


@pytest.mark.long
def test_on_a_standalone_cluster(jobs: Jobs, rng: random.Random, tmp_path: Any) -> None:
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        changed_in_the_middle(jobs, rng, str(jobs.location), str(jobs.location), "tasks", master=cluster.url)
    jobs.judge.check(jobs.location, all_retained=False)


@pytest.mark.long
def test_on_hdfs(jobs: Jobs, rng: random.Random, hdfs: Hdfs) -> None:
    location = hdfs.new_location()
    changed_in_the_middle(jobs, rng, location, hdfs.on_the_web(location), "driver")
    hdfs.copy(location, jobs.location)
    jobs.judge.check(jobs.location, all_retained=False)
