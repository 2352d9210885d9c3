"""A query with its checkpoint location on Google Cloud Storage or Azure: executors through the stores' connectors, the
coordinator through gcsfs and adlfs."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.object_store import hadoop_version
from spark_ckpt.storage import Storage, files_below, resolve
from tests.spark.jobs.running_count import GATE, waiting
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
"""The batch in which the driver is killed."""

GOOGLE = {
    "spark.hadoop.fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    "spark.hadoop.fs.gs.block.size": "67108864",
    "spark.hadoop.fs.gs.operation.move.enable": "false",  # the server has no such operation
}
"""Settings of Google's connector, as in docs/storage.md; the last one is for fake-gcs-server alone."""


@pytest.fixture(scope="session")
def connectors() -> Path:
    """Directory with the jars of both connectors."""
    version = hadoop_version()
    return build(MODULE, f"hadoop-{version}", f"-Dhadoop.version={version}")


@pytest.mark.parametrize("kind", ["gcs", "azure"])
def test_a_driver_killed_on_an_object_store(
    jobs: Jobs, rng: random.Random, connectors: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """SIGKILL of driver, JVM and side process during a batch: the next driver continues, and nothing is lost."""
    store: ObjectStore = request.getfixturevalue(kind)
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, BATCHES)
    batches[GATED].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    url = f"{store.url}/query"
    storage = resolve(url, store.settings)
    settings = {
        "spark.driver.extraClassPath": f"{connectors}/*",
        f"{CKPT_PREFIX}ackThreshold": "0",  # executors write all of their state to files, and thus to the store
        **{f"spark.hadoop.{key}": value for key, value in store.settings.items()},
        **(GOOGLE if kind == "gcs" else {}),
    }
    first = start(jobs, url, settings, gate)
    assert first.await_(waiting(gate).exists), first.output()[-6000:]
    first.kill()
    assert storage.exists(f"offsets/{GATED}")
    assert not storage.exists(f"commits/{GATED}")
    gate.touch()
    second = start(jobs, url, settings, gate)
    assert second.wait() == 0, second.output()[-6000:]
    fetch(storage, jobs.location)
    jobs.finish(second)
    if jobs.provider.is_ours:
        assert assert_invariants(storage).checkpoints == BATCHES
        claims = [record for record in log_records(jobs.location) if record["kind"] == "claim"]
        assert [claim["generation"] for claim in claims] == [1, 2]


def start(jobs: Jobs, url: str, settings: Mapping[str, str], gate: Path) -> DriverJob:
    conf = [f"{key}={value}" for key, value in settings.items()]
    return jobs.start(location=url, conf=conf, gate=gate, master="local[4]", partitions=5)


def fetch(storage: Storage, folder: Path) -> None:
    """Copies all files."""
    for name in files_below(storage, "", hidden=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(storage.read(name))
