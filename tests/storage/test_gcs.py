"""Storage on Google Cloud Storage: contract, creates that overlap, and answers of a server that is not well."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.errors import SettingError
from spark_ckpt.location.file_system import storage_at
from spark_ckpt.storage import Storage, Whose, create_and_find, resolve
from spark_ckpt.storage.gcs_config import gcs_options
from tests.storage.contract import StorageContract
from tests.support.cli import run
from tests.support.object_stores import ObjectStore


class TestGcsStorage(StorageContract):
    @pytest.fixture
    def storages(self, gcs: ObjectStore) -> Callable[[str], Storage]:
        place = f"{gcs.url}/{uuid.uuid4().hex}"
        return lambda name: resolve(f"{place}/{name}", gcs.settings)


@pytest.fixture
def storage(gcs: ObjectStore) -> Storage:
    return resolve(f"{gcs.url}/location", gcs.settings)


def test_a_probe_passes(storage: Storage) -> None:
    storage.probe("ckpt")
    assert list(storage.list("ckpt")) == []


def test_content_may_look_like_the_end_of_a_part(storage: Storage) -> None:
    """gcsfs would send it in a body whose parts end with these bytes."""
    content = b"x\n--==0==--\nrest"
    storage.write_atomic("a", content)
    assert create_and_find(storage, "b", content).whose is Whose.MINE
    assert (storage.read("a"), storage.read("b")) == (content, content)


def test_many_are_deleted_and_missing_ones_ignored(storage: Storage) -> None:
    names = [f"d/{number}" for number in range(100)]
    for name in names[:50]:
        storage.write_atomic(name, b"x")
    storage.delete_all(names)
    assert list(storage.list("d")) == []


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {"token": "google_default"}),
        ({"fs.gs.auth.type": "unauthenticated"}, {"token": "anon"}),
        ({"fs.gs.auth.type": "COMPUTE_ENGINE"}, {"token": "cloud"}),
        ({"fs.gs.auth.service.account.json.keyfile": "/key.json"}, {"token": "/key.json"}),
        (
            {"fs.gs.storage.root.url": "http://store/", "fs.gs.project.id": "p"},
            {"token": "google_default", "endpoint_url": "http://store", "project": "p"},
        ),
    ],
)
def test_settings_of_the_connectors(settings: dict[str, str], options: dict[str, str]) -> None:
    assert gcs_options(settings) == options


@pytest.mark.parametrize("kind", ["SERVICE_ACCOUNT_JSON_KEYFILE", "PASSWORD"])
def test_credentials_that_cannot_be(kind: str) -> None:
    with pytest.raises(SettingError, match=r"fs\.gs\.auth\.type"):
        gcs_options({"fs.gs.auth.type": kind})


def test_commands_find_an_emulator_in_the_environment(gcs: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{gcs.address}")
    storage_at(f"{gcs.url}/location").write_atomic("d/a", b"x")
    assert resolve(f"{gcs.url}/location", gcs.settings).read("d/a") == b"x"
    assert run("doctor", f"{gcs.url}/location", "--json").status != 0


def test_no_credentials_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(SettingError, match=r"fs\.gs\.auth\.type.*this process finds no credentials"):
        resolve("gs://bucket/location")
