"""Object stores of others: the contract of a storage, and a race of many clients for the same files."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from spark_ckpt.operations.probe import probe
from spark_ckpt.storage import Storage, resolve
from tests.storage.contract import StorageContract
from tests.support.object_stores import ObjectStore
from tests.support.s3_servers import SERVERS

pytestmark = pytest.mark.stores


class TestObjectStores(StorageContract):
    @pytest.fixture
    def storages(self, store: ObjectStore) -> Callable[[str], Storage]:
        place = f"{store.url}/{uuid.uuid4().hex}"
        return lambda name: resolve(f"{place}/{name}", store.settings)


def test_one_client_of_a_race_wins_each_file(store: ObjectStore, request: pytest.FixtureRequest) -> None:
    server = SERVERS.get(request.node.callspec.params["store"])
    clients, rounds = (server.clients, server.rounds) if server else (16, 100)
    found = probe(resolve(f"{store.url}/race", store.settings), clients, rounds)
    print(found)
    assert found.is_exclusive
    assert (found.won_by_one, found.won_by_none, found.unknown) == (rounds, 0, 0)
