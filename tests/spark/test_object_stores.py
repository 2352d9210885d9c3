"""A query with its checkpoint location on an object store: executors through the store's connector, the coordinator
through s3fs, gcsfs and adlfs. Google's in each run of the tests, Azure's in `make test-long`, those of S3 in
`make test-stores`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.object_store import hadoop_version
from spark_ckpt.storage import Storage, files_below, resolve
from tests.spark.jobs.running_count import FAILED, GATE, waiting
from tests.support.checkpoints import log_records
from tests.support.feeds import at
from tests.support.invariants import assert_invariants
from tests.support.jobs import Jobs, with_duplicates
from tests.support.maven import build
from tests.support.object_stores import ObjectStore
from tests.support.processes import DriverJob
from tests.support.provider import CKPT_PREFIX, REPOSITORY

MODULE = REPOSITORY / "jvm-shim" / "store-jars"
BATCHES = 5
GATED = 2
"""The batch at which the first driver waits."""

KILLS = 6

GOOGLE = {
    "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    "spark.hadoop.fs.gs.block.size": "67108864",
    "spark.hadoop.fs.gs.operation.move.enable": "false",  # the server has no such operation
}
"""Settings of Google's connector, as in docs/storage.md; the last one is for fake-gcs-server alone."""


@dataclass
class Query:
    """The running count at a location on a store.

    Args:
        jobs: its drivers.
        url: the location.
        storage: the same.
        settings: Spark settings of each driver.
        gate: file for which drivers with a gate wait in one batch.
    """

    jobs: Jobs
    url: str
    storage: Storage
    settings: Mapping[str, str]
    gate: Path

    def start(self, name: str = "driver", *, gated: bool = True) -> DriverJob:
        conf = [f"{key}={value}" for key, value in self.settings.items()]
        options: dict[str, Any] = {"conf": conf, "master": "local[4]", "partitions": 5}
        if gated:
            options["gate"] = self.gate
        return self.jobs.start(name, location=self.url, **options)

    def start_to_gate(self, name: str = "driver") -> DriverJob:
        """Starts a driver; it has prepared the batch with the gate, and waits in it."""
        driver = self.start(name)
        assert driver.await_(waiting(self.gate).exists), driver.output()[-6000:]
        assert self.storage.exists(f"offsets/{GATED}")
        assert not self.storage.exists(f"commits/{GATED}")
        return driver

    def check(self, driver: DriverJob, claims: int | None = None) -> None:
        """Awaits the end of the last driver: nothing is lost, and the location was claimed as often as given."""
        assert driver.wait() == 0, driver.output()[-6000:]
        for name in files_below(self.storage, "", hidden=True):
            path = self.jobs.location / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.storage.read(name))
        self.jobs.finish(driver)
        if self.jobs.provider.is_ours:
            assert assert_invariants(self.storage).checkpoints == BATCHES
        if self.jobs.provider.is_ours and claims is not None:
            found = [record["generation"] for record in log_records(self.jobs.location) if record["kind"] == "claim"]
            assert found == list(range(1, claims + 1))


@pytest.fixture(scope="session")
def connectors(s3a: str) -> str:
    """Class path of the connectors."""
    version = hadoop_version()
    return f"{build(MODULE, f'hadoop-{version}', f'-Dhadoop.version={version}')}/*:{s3a}"


@pytest.fixture
def query_on(jobs: Jobs, rng: random.Random, connectors: str) -> Callable[[ObjectStore], Query]:
    """The query on a store, with all of its input."""

    def make(store: ObjectStore) -> Query:
        batches = with_duplicates(rng, BATCHES)
        batches[GATED].append((at(0), GATE, 1))
        for batch in batches:
            jobs.feed.drop(batch)
        url = f"{store.url}/query"
        settings = {
            "spark.driver.extraClassPath": connectors,
            f"{CKPT_PREFIX}ackThreshold": "0",  # executors write all of their state to files, and thus to the store
            **{f"spark.hadoop.{key}": value for key, value in store.settings.items()},
            **(GOOGLE if url.startswith("gs:") else {}),
        }
        return Query(jobs, url, resolve(url, store.settings), settings, jobs.folder / "gate-is-open")

    return make


def kill_one(query: Query) -> None:
    """SIGKILL of driver, JVM and side process during a batch: the next driver continues, and nothing is lost."""
    query.start_to_gate().kill()
    query.gate.touch()
    query.check(query.start(), claims=2)


def run_two(query: Query) -> None:
    """A second driver takes over from one that lives: the first one's checkpoint does not count, and its error says
    why."""
    first = query.start_to_gate("first")
    second = query.start("second", gated=False)
    query.check(second, claims=2)
    query.gate.touch()
    assert first.wait() == FAILED, first.output()[-6000:]
    for words in ("[FencedError]", "has taken over"):
        assert words in first.output(), first.output()[-6000:]


@pytest.mark.long
def test_a_driver_killed_on_google_cloud_storage(query_on: Callable[[ObjectStore], Query], gcs: ObjectStore) -> None:
    kill_one(query_on(gcs))


@pytest.mark.long
def test_two_drivers_on_azure(query_on: Callable[[ObjectStore], Query], azure: ObjectStore) -> None:
    run_two(query_on(azure))


@pytest.mark.stores
def test_a_driver_killed(query_on: Callable[[ObjectStore], Query], store: ObjectStore) -> None:
    kill_one(query_on(store))


@pytest.mark.stores
def test_two_drivers(query_on: Callable[[ObjectStore], Query], store: ObjectStore) -> None:
    run_two(query_on(store))


@pytest.mark.stores
def test_many_kills(query_on: Callable[[ObjectStore], Query], rng: random.Random, store: ObjectStore) -> None:
    """A short soak: drivers die anywhere, from their first request on."""
    query = query_on(store)
    query.gate.touch()
    kills = 0
    driver = query.start()
    while kills < KILLS and driver.await_(partial(query.storage.exists, f"offsets/{rng.randrange(BATCHES)}")):
        driver.kill()
        kills += 1
        driver = query.start()
    print(f"{kills} kills")
    query.check(driver)
