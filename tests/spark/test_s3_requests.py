"""Requests of the state of batches on S3, counted by the object store."""

from __future__ import annotations

import pytest

from benchmarks.object_store import ObjectStore, s3a_class_path
from spark_ckpt.features import Feature
from spark_ckpt.storage import resolve
from tests.support.feeds import at
from tests.support.jobs import Jobs
from tests.support.provider import CKPT_PREFIX

BATCHES = 24
CHANGED = 600
INITIAL = 40_000


def test_merges_read_nothing_from_s3(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store keeps copies of the deltas that it writes until they are merged."""
    jobs.feed.drop((at(n), f"k{n % 9}", n) for n in range(INITIAL))
    for batch in range(1, BATCHES):
        jobs.feed.drop((at(n), f"k{n % 9}", -n) for n in range(batch * CHANGED, (batch + 1) * CHANGED))
    with ObjectStore(0) as store:
        settings = {"spark.driver.extraClassPath": s3a_class_path(), f"{CKPT_PREFIX}ackThreshold": "0", **store.conf()}
        driver = jobs.start(location=store.location("query"), conf=[f"{k}={v}" for k, v in settings.items()])
        assert driver.wait() == 0, driver.output()[-6000:]
        reads = [
            each
            for each in store.requests.noted
            if each.method == "GET" and each.target.startswith("/benchmark/query/ckpt/shared/")
        ]
        for name, value in store.environment().items():
            monkeypatch.setenv(name, value)
        storage = resolve(store.location("query"))
        newest = storage.read(f"ckpt/chk-{BATCHES}/_metadata")
    assert Feature.MERGED_DELTAS.value.encode() in newest
    assert reads == []
