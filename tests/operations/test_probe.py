"""A race of clients shows how many creates of a file win."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ckpt.operations.probe import Probe, probe
from spark_ckpt.storage import CreateOutcome, CreateResult, LocalStorage, Storage, resolve
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from tests.support.cli import run
from tests.support.object_stores import ObjectStore


class Replacing(LocalStorage):
    """Passes the probe of a start, and then lets every create win."""

    def probe(self, directory: str) -> None:
        return

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        self.write_atomic(name, data)
        return CreateResult(CreateOutcome.WON)


def check(found: Probe, storage: Storage, clients: int, rounds: int) -> None:
    assert (found.won_by_one, found.won_by_several, found.won_by_none, found.changed) == (rounds, 0, 0, 0)
    assert (found.most_winners, found.clients, found.is_exclusive) == (1, clients, True)
    assert 0 < found.median_ms <= found.slowest_ms
    assert list(storage.list("ckpt")) == []


def test_a_local_disk_lets_one_win(tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    storage = LocalStorage(tmp_path)
    check(probe(storage, 8, 20, lambda number, of: done.append((number, of))), storage, 8, 20)
    assert done == [(number, 20) for number in range(1, 21)]


@pytest.mark.parametrize("kind", ["gcs", "azure"])
def test_object_stores_let_one_win(request: pytest.FixtureRequest, kind: str) -> None:
    store: ObjectStore = request.getfixturevalue(kind)
    storage = resolve(f"{store.url}/location", store.settings)
    check(probe(storage, 16, 25), storage, 16, 25)


def test_a_storage_that_replaces_files(tmp_path: Path) -> None:
    found = probe(Replacing(tmp_path), 4, 5)
    assert (found.won_by_several, found.most_winners, found.is_exclusive) == (5, 4, False)
    assert list(LocalStorage(tmp_path).list("ckpt")) == []


def test_a_storage_that_fails_the_probe_of_a_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(storage: Storage, directory: str) -> None:
        raise ExclusiveCreateUnsupportedError(storage.location, "it replaced an existing file")

    monkeypatch.setattr(LocalStorage, "probe", refuse)
    with pytest.raises(ExclusiveCreateUnsupportedError):
        probe(LocalStorage(tmp_path), 2, 1)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("probe", str(tmp_path / "q"), "--clients", "4", "--rounds", "3")
    assert (done.status, "one winner each" in done.stdout, "3 won by one" in done.stdout) == (0, True, True)
    assert run("probe", str(tmp_path / "q"), "--rounds", "2", "--json").json["exclusive"] is True
    monkeypatch.setattr("spark_ckpt.cli.commands.probe.storage_at", lambda location: Replacing(location))
    failed = run("probe", str(tmp_path / "q"), "--clients", "4", "--rounds", "3")
    assert (failed.status, "NOT EXCLUSIVE" in failed.stdout) == (3, True)
