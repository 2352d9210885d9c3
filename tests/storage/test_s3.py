"""Storage on S3, as a query finds it: what it keeps to, and what it costs."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.storage import Storage, resolve
from tests.storage.contract import StorageContract
from tests.support.s3 import S3, Requests, count_requests


class TestS3Storage(StorageContract):
    @pytest.fixture
    def storage(self, s3: S3) -> Storage:
        return resolve(f"s3a://{s3.bucket}/{uuid.uuid4().hex}")


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
    assert storage.is_remote
    assert storage.writes_whole
