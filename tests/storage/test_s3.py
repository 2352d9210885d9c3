"""Storage on S3: contract, and number of requests."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage import Storage, resolve, s3_client
from tests.storage.contract import StorageContract
from tests.support.clocks import NoClock
from tests.support.s3 import S3, Requests, count_requests


class TestS3Storage(StorageContract):
    @pytest.fixture
    def storages(self, s3: S3) -> Callable[[str], Storage]:
        place = f"s3a://{s3.bucket}/{uuid.uuid4().hex}"
        return lambda name: resolve(f"{place}/{name}")


@pytest.fixture
def storage(s3: S3) -> Storage:
    return resolve(f"{s3.url}/location")


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    return count_requests(monkeypatch)


def test_each_operation_is_one_request(storage: Storage, requests: Requests) -> None:
    def cost(operation: Any, *args: object) -> list[str]:
        requests.clear()
        operation(*args)
        return list(requests)

    assert cost(storage.write_atomic, "d/a", b"x") == ["put_object"]
    assert cost(storage.create_exclusive, "d/b", b"x") == ["put_object"]
    assert cost(storage.create_exclusive, "d/b", b"x") == ["put_object"]
    assert cost(storage.read, "d/a") == ["get_object"]
    assert cost(storage.read_range, "d/a", 0, 1) == ["get_object"]
    assert cost(storage.size, "d/a") == ["head_object"]
    assert cost(storage.delete, "d/a") == ["delete_object"]
    assert cost(storage.delete_all, ["d/b", "d/c"]) == ["delete_objects"]
    assert cost(storage.delete_all, []) == []
    assert cost(storage.remove_empty, "d") == []


def test_to_find_that_a_file_is_not_there_is_one_request(storage: Storage, requests: Requests) -> None:
    with pytest.raises(StateFileNotFoundError):
        storage.read("d/none")
    assert requests == ["get_object"]


def test_what_may_be_spared(storage: Storage) -> None:
    assert storage.requests_are_slow
    assert storage.defers_deletions
    assert storage.writes_whole


def test_a_key_may_look_like_a_version(storage: Storage) -> None:
    storage.write_atomic("d/a", b"other")
    storage.write_atomic("d/a?versionId=1", b"mine")
    assert (storage.read("d/a?versionId=1"), storage.size("d/a?versionId=1")) == (b"mine", 4)
    storage.delete_all(["d/a?versionId=1"])
    assert [file.name for file in storage.list("d")] == ["a"]


def test_more_than_a_thousand_are_deleted_in_parts(
    storage: Storage, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "_MAX_KEYS_IN_A_REQUEST", 2)
    names = [f"d/{i}" for i in range(5)]
    for name in names:
        storage.write_atomic(name, b"x")
    requests.clear()
    storage.delete_all(names)
    assert requests == ["delete_objects"] * 3
    assert list(storage.list("d")) == []


def test_an_object_that_cannot_be_deleted_is_an_error(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3 answers 200 and lists the objects that it did not delete; that is an error."""

    async def refuse(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return {"Errors": [{"Key": "location/d/b", "Code": "AccessDenied", "Message": "not yours"}]}

    monkeypatch.setattr(s3_client.OneTryS3FileSystem, "_call_s3", refuse)
    monkeypatch.setattr(storage, "_clock", NoClock())
    with pytest.raises(StorageError, match="AccessDenied: location/d/b: not yours"):
        storage.delete_all(["d/a", "d/b"])
