"""A local S3 server: moto's, on a free port, with credentials that are valid nowhere else.

`tests/conftest.py` exports the fixtures to all tests. `s3` sets the usual AWS environment variables, so that s3fs in
this process and any process a test starts find the server without further configuration.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from benchmarks.object_store import exclusive_puts
from tests.support.waiting import PATIENCE

HOST = "127.0.0.1"

Requests: TypeAlias = list[str]
"""Requests made by s3fs, by the names of botocore's methods."""


@dataclass(frozen=True)
class S3:
    """A dedicated bucket on the server."""

    endpoint: str
    bucket: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}"


@pytest.fixture(scope="session")
def patient_clients() -> Iterator[None]:
    """Prevents clients of this process from timing out or retrying while the machine stalls."""
    from spark_ckpt.storage import s3_client
    from spark_ckpt.storage.s3_config import S3_CLIENT

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3_client, "REQUEST_SECONDS", PATIENCE)
        for option in ("read_timeout", "connect_timeout"):
            patch.setitem(S3_CLIENT, option, PATIENCE)
        yield


@pytest.fixture(scope="session")
def s3_endpoint(patient_clients: None) -> Iterator[str]:
    """URL of a running server."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # otherwise logs a line per request
    server = ThreadedMotoServer(HOST, 0, verbose=False)
    with exclusive_puts():
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def s3_environment(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment of a process that uses the server, without this machine's own AWS settings."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": s3_endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def s3(s3_endpoint: str, s3_environment: None) -> S3:
    """An empty bucket, and the environment that points to it."""
    import s3fs

    bucket = f"bucket-{uuid.uuid4().hex}"
    # Cached instances hold the environment of another test.
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem(skip_instance_cache=True).mkdir(bucket)
    return S3(s3_endpoint, bucket)


def count_requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """A list that records each request made by s3fs from now on."""
    import s3fs

    requests: Requests = []
    call = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        requests.append(method)
        return await call(self, method, *args, **kwargs)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    return requests
