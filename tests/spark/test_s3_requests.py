"""Requests of batches on S3, counted by the object store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from benchmarks.object_store import ObjectStore, Request, s3a_class_path
from spark_ckpt.features import Feature
from spark_ckpt.storage import resolve
from tests.support.feeds import at
from tests.support.jobs import Jobs
from tests.support.provider import CKPT_PREFIX

BATCHES = 24
CHANGED = 600
INITIAL = 40_000


@pytest.mark.long
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


PUBLISHED = 30
"""Batches of a run whose requests are counted."""

WINDOW = range(9, PUBLISHED - 1)
"""Batches that count: two of them compact the log of the file source, and old entries of all logs are deleted."""


def test_a_batch_takes_at_most_eight_requests(jobs: Jobs) -> None:
    """Five of them for state. The rest are for Spark's logs, whose old entries are deleted meanwhile."""
    for batch in range(PUBLISHED):
        jobs.feed.drop((at(n), f"k{n % 9}", n) for n in range(batch * CHANGED, (batch + 1) * CHANGED))
    with ObjectStore(0) as store:
        settings = {
            "spark.driver.extraClassPath": s3a_class_path(),
            "spark.sql.streaming.minBatchesToRetain": "2",
            "spark.sql.streaming.fileSource.log.cleanupDelay": "0",
            f"{CKPT_PREFIX}retained": "2",
            **store.conf(),
        }
        driver = jobs.start(location=store.location("query"), conf=[f"{k}={v}" for k, v in settings.items()])
        assert driver.wait() == 0, driver.output()[-6000:]
        of_batches = requests_of(store.requests.noted, WINDOW)
    counted = Counter(f"{each.method} {named(each)}" for each in of_batches)
    of_state = [each for each in of_batches if not each.is_of_log]
    assert len(of_batches) <= 8 * len(WINDOW) + 1, counted  # one lists the log of the source
    assert len(of_state) <= 5 * len(WINDOW), counted
    puts = ("offsets", "commits", "sources/0", "ckpt/shared", "ckpt/completed")
    assert {name: counted[f"PUT {name}"] for name in puts} == dict.fromkeys(puts, len(WINDOW)), counted
    assert not any(name.startswith("HEAD") for name in counted), counted


def named(request: Request) -> str:
    """Directory of a request's object below the location, or its query."""
    path, _, query = request.target.partition("?")
    return "/".join(path.split("/")[3:-1]) or query


def requests_of(requests: Sequence[Request], batches: range) -> list[Request]:
    """Requests from the end of the batch before these to the end of the last one."""
    ends = {each.target: at for at, each in enumerate(requests) if each.method == "PUT" and "/commits/" in each.target}
    first, last = (ends[f"/benchmark/query/commits/{batch}?"] for batch in (batches[0] - 1, batches[-1]))
    return list(requests[first + 1 : last + 1])
