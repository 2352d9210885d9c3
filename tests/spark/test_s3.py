"""A query with its checkpoint location on S3, reached by executors through S3A and by the coordinator through s3fs."""

from __future__ import annotations

import random
import uuid

import fsspec
import pytest

from spark_ckpt.storage import resolve
from tests.spark.jobs.running_count import GATE, waiting
from tests.support.checkpoints import log_records
from tests.support.cli import run
from tests.support.feeds import at
from tests.support.invariants import assert_invariants
from tests.support.jobs import Jobs, with_duplicates
from tests.support.processes import DriverJob
from tests.support.provider import CKPT_PREFIX
from tests.support.s3 import S3

BATCHES = 5
GATED = 2
"""The batch in which the driver is killed."""


@pytest.fixture
def secret() -> str:
    """Secret key that must not appear anywhere but in the settings."""
    return uuid.uuid4().hex


@pytest.fixture
def settings(s3: S3, s3a: str, secret: str) -> dict[str, str]:
    """Spark settings, the driver's only source of the S3 endpoint and credentials."""
    return {
        "spark.driver.extraClassPath": s3a,
        "spark.hadoop.fs.s3a.endpoint": s3.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "test",
        "spark.hadoop.fs.s3a.secret.key": secret,
        f"{CKPT_PREFIX}ackThreshold": "0",  # executors write all of their state to files, and thus to S3
    }


def test_a_driver_killed_on_s3(
    jobs: Jobs, rng: random.Random, s3: S3, settings: dict[str, str], secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL of driver, JVM and side process during a batch: the next driver continues, and nothing is lost."""
    gate = jobs.folder / "gate-is-open"
    batches = with_duplicates(rng, BATCHES)
    batches[GATED].append((at(0), GATE, 1))
    for batch in batches:
        jobs.feed.drop(batch)
    url = f"{s3.url}/query"
    storage = resolve(url)

    def start() -> DriverJob:
        conf = [f"{key}={value}" for key, value in settings.items()]
        with monkeypatch.context() as environment:
            for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
                environment.delenv(name)
            return jobs.start(
                location=url.replace("s3:", "s3a:"), conf=conf, gate=gate, master="local[4]", partitions=5
            )

    first = start()
    assert first.await_(waiting(gate).exists), first.output()[-6000:]
    first.kill()
    assert storage.exists(f"offsets/{GATED}")
    assert not storage.exists(f"commits/{GATED}")
    gate.touch()
    second = start()
    assert second.wait() == 0, second.output()[-6000:]

    client = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)
    client.get(f"{s3.bucket}/query", str(jobs.location), recursive=True)
    jobs.finish(second)
    if jobs.provider.is_ours:
        assert assert_invariants(storage).checkpoints == BATCHES
        claims = [record for record in log_records(jobs.location) if record["kind"] == "claim"]
        assert [claim["generation"] for claim in claims] == [1, 2]
        files = {file.name.partition("-")[0] for file in storage.list("ckpt/shared")}
        assert files == {"delta", "deltas"}  # of one task, and of concurrent tasks
        assert [each["batch_id"] for each in run("list", url, "--json").json["checkpoints"]] == list(range(BATCHES))
        assert run("inspect", url, "--json").json["path"].startswith(f"{url}/ckpt/chk-")
    for path in jobs.folder.rglob("*"):  # driver logs and copies of all objects
        assert path.is_dir() or secret.encode() not in path.read_bytes(), f"the secret key is in {path}"
