from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import s3fs

from benchmarks.object_store import BUCKET, DelayedRequests, ObjectStore


def test_keeps_objects_and_counts_requests() -> None:
    with ObjectStore(0) as store:
        before = len(store.requests.noted)
        began = time.time()
        client = s3fs.S3FileSystem(
            key="any", secret="any", endpoint_url=store.endpoint, skip_instance_cache=True, use_listings_cache=False
        )
        client.pipe_file(f"{BUCKET}/a", b"content")
        assert client.cat_file(f"{BUCKET}/a") == b"content"
        noted = store.requests.noted[before:]
    assert len(noted) >= 2
    assert all(began <= request.moment <= time.time() for request in noted)
    assert any(request.target.startswith(f"/{BUCKET}/a?") for request in noted)


def test_each_request_waits_before_it_is_passed_on() -> None:
    passed: list[float] = []

    def application(environ: dict[str, Any], start_response: object) -> Iterable[bytes]:
        passed.append(time.time())
        return [b"answer"]

    requests = DelayedRequests(application, 20)
    assert list(requests({}, lambda *_: None)) == [b"answer"]  # type: ignore[arg-type]
    assert passed[0] - requests.noted[0].moment >= 0.02


def test_each_store_begins_empty() -> None:
    for _ in range(2):
        with ObjectStore(0) as store:
            client = s3fs.S3FileSystem(
                key="any", secret="any", endpoint_url=store.endpoint, skip_instance_cache=True, use_listings_cache=False
            )
            assert client.ls(BUCKET) == []
            client.pipe_file(f"{BUCKET}/a", b"content")


def test_spark_is_told_where_it_is() -> None:
    with ObjectStore(0) as store:
        assert store.conf()["spark.hadoop.fs.s3a.endpoint"] == store.endpoint
        assert store.location("run") == "s3a://benchmark/run"
