from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping
from typing import Any

import pytest

from spark_ckpt.storage import FsspecStorage, Storage, resolve, s3_config, shared_clients
from spark_ckpt.storage.shared_clients import SharedClients
from tests.support.waiting import eventually

SETTINGS = {"fs.s3a.endpoint": "http://127.0.0.1:1", "fs.s3a.access.key": "a", "fs.s3a.secret.key": "b"}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Options of each new client."""
    options: list[Mapping[str, Any]] = []
    new = shared_clients._new_file_system

    def note(kind: Any, given: Mapping[str, Any]) -> Any:
        options.append(given)
        return new(kind, given)

    monkeypatch.setattr(shared_clients, "_new_file_system", note)
    monkeypatch.setattr(s3_config, "SHARED_CLIENTS", SharedClients())
    return options


def client(storage: Storage) -> Any:
    assert isinstance(storage, FsspecStorage)
    return storage._fs


def test_queries_share_a_client(made: list[Mapping[str, Any]]) -> None:
    storages = [resolve(f"s3a://bucket{i}/q{i}", SETTINGS) for i in range(50)]
    assert len({id(client(storage)) for storage in storages}) == 1
    assert len(made) == 1


def test_short_runs_one_after_another_make_one_client(made: list[Mapping[str, Any]]) -> None:
    for i in range(1000):
        resolve(f"s3a://bucket/q{i}", SETTINGS)
    assert len(made) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"fs.s3a.access.key": "c"},
        {"fs.s3a.secret.key": "c"},
        {"fs.s3a.session.token": "c"},
        {"fs.s3a.endpoint": "http://127.0.0.1:2"},
        {"fs.s3a.endpoint.region": "eu-west-1"},
        {"fs.s3a.path.style.access": "true"},
        {"fs.s3a.bucket.bucket.access.key": "c"},
    ],
)
def test_another_endpoint_or_identity_has_another_client(
    made: list[Mapping[str, Any]], other: Mapping[str, str]
) -> None:
    assert client(resolve("s3a://bucket/q", SETTINGS)) is not client(resolve("s3a://bucket/q", {**SETTINGS, **other}))
    assert len(made) == 2


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"])
def test_another_environment_has_another_client(
    made: list[Mapping[str, Any]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "one")
    first = client(resolve("s3a://bucket/q"))
    monkeypatch.setenv(name, "two")
    assert client(resolve("s3a://bucket/q")) is not first


def test_credentials_that_were_renewed_in_their_file_are_read(
    made: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    first = client(resolve("s3a://bucket/q"))
    file.write_text("[default]")
    assert client(resolve("s3a://bucket/q")) is not first


def test_what_no_storage_uses_any_more_is_let_go(made: list[Mapping[str, Any]]) -> None:
    used = resolve("s3a://bucket/q", SETTINGS)
    first = client(used)
    unused = weakref.ref(client(resolve("s3a://bucket/q", {**SETTINGS, "fs.s3a.access.key": "unused"})))
    for i in range(10):
        resolve("s3a://bucket/q", {**SETTINGS, "fs.s3a.access.key": str(i)})
    eventually(lambda: gc.collect() >= 0 and unused() is None, what="the unused client is collected")
    assert client(resolve("s3a://bucket/q", SETTINGS)) is first
