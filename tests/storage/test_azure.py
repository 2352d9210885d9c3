"""Storage on Azure Blob Storage: contract, creates that overlap, and settings of ABFS."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from spark_ckpt.errors import SettingError
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.storage import Storage, resolve
from spark_ckpt.storage.azure_config import azure_options
from tests.storage.contract import StorageContract
from tests.support.cli import run
from tests.support.clocks import NoClock
from tests.support.object_stores import ACCOUNT, ACCOUNT_KEY, ObjectStore

HOST = "logs.dfs.core.windows.net"
BLOBS = {"account_name": "logs", "account_host": "logs.blob.core.windows.net", "anon": False}


class TestAzureStorage(StorageContract):
    @pytest.fixture
    def storages(self, azure: ObjectStore) -> Callable[[str], Storage]:
        place = f"{azure.url}/{uuid.uuid4().hex}"
        return lambda name: resolve(f"{place}/{name}", azure.settings)


@pytest.fixture
def storage(azure: ObjectStore) -> Storage:
    return resolve(f"{azure.url}/location", azure.settings)


def test_a_probe_passes(storage: Storage) -> None:
    storage.probe("ckpt")
    assert list(storage.list("ckpt")) == []


def test_a_failure_of_the_chunks_publishes_nothing(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """adlfs would publish the blocks that it has."""
    monkeypatch.setattr(storage, "_clock", NoClock())

    def chunks() -> Iterator[bytes]:
        yield b"x" * (8 << 20)
        raise RuntimeError("no more")

    with pytest.raises(Exception, match="no more"):
        storage.write_chunks("a", chunks)
    assert not storage.exists("a")


def test_many_are_deleted_and_missing_ones_ignored(storage: Storage) -> None:
    names = [f"d/{number}" for number in range(100)]
    for name in names[:50]:
        storage.write_atomic(name, b"x")
    storage.delete_all(names)
    assert list(storage.list("d")) == []


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, BLOBS),
        ({f"fs.azure.account.key.{HOST}": "k"}, BLOBS | {"account_key": "k"}),
        ({"fs.azure.account.key": "k"}, BLOBS | {"account_key": "k"}),
        ({f"fs.azure.sas.fixed.token.{HOST}": "s"}, BLOBS | {"sas_token": "s"}),
        (
            {
                "fs.azure.account.oauth2.client.id": "c",
                "fs.azure.account.oauth2.client.secret": "s",
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
            },
            BLOBS | {"client_id": "c", "client_secret": "s", "tenant_id": "t"},
        ),
        (
            {
                "fs.azure.abfs.endpoint": "127.0.0.1:1",
                "fs.azure.account.key": "k",
                "fs.azure.always.use.https": "false",
            },
            {
                "connection_string": "BlobEndpoint=http://127.0.0.1:1/logs;AccountName=logs;AccountKey=k",
                "account_name": "logs",
            },
        ),
    ],
)
def test_settings_of_abfs(settings: dict[str, str], options: dict[str, object]) -> None:
    assert azure_options(HOST, settings) == options


def test_a_client_without_a_tenant() -> None:
    settings = {"fs.azure.account.oauth2.client.id": "c", "fs.azure.account.oauth2.client.secret": "s"}
    with pytest.raises(SettingError, match="names no tenant"):
        azure_options(HOST, settings)


def test_commands_find_an_account_in_the_environment(azure: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = f"BlobEndpoint=http://{azure.address}/{ACCOUNT}"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"{endpoint};AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY}")
    storage_at(f"{azure.url}/location").write_atomic("d/a", b"x")
    assert resolve(f"{azure.url}/location", azure.settings).read("d/a") == b"x"
    assert run("doctor", f"{azure.url}/location", "--json").status != 0
