from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from spark_ckpt.location.cleaner import Cleaner, ThreadCleaner
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.support.cleaner import ImmediateCleaner
from tests.support.clocks import NoClock
from tests.support.waiting import PATIENCE


@pytest.fixture(params=[ImmediateCleaner, ThreadCleaner])
def make(request: pytest.FixtureRequest) -> Callable[[FaultyStorage], Cleaner]:
    return lambda storage: request.param(storage, NoClock())


@pytest.fixture
def storage(tmp_path: Path) -> FaultyStorage:
    storage = FaultyStorage(LocalStorage(tmp_path))
    for name in ("ckpt/shared/a", "ckpt/shared/b", "ckpt/chk-3/_metadata"):
        storage.inner.write_atomic(name, b"x")
    return storage


def test_deletes_what_it_is_given(make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage) -> None:
    cleaner = make(storage)
    cleaner.submit(["ckpt/shared/a", "ckpt/chk-3/_metadata"])
    cleaner.close(PATIENCE)
    assert not storage.exists("ckpt/shared/a")
    assert storage.exists("ckpt/shared/b")
    assert {entry.name for entry in storage.list("ckpt")} == {"shared"}


def test_deletes_a_file_once(make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage) -> None:
    cleaner = make(storage)
    for _ in range(3):
        cleaner.submit(["ckpt/shared/a"])
    cleaner.close(PATIENCE)
    assert storage.log.count(("delete", "ckpt/shared/a")) == 1
    assert cleaner.was_submitted("ckpt/shared/a")
    assert not cleaner.was_submitted("ckpt/shared/b")


def test_tries_again(make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage) -> None:
    storage.fail("delete", "shared/a", times=2)
    cleaner = make(storage)
    cleaner.submit(["ckpt/shared/a"])
    cleaner.close(PATIENCE)
    assert not storage.exists("ckpt/shared/a")


def test_gives_up_and_continues(
    make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.fail("delete", "shared/a", times=100)
    cleaner = make(storage)
    with caplog.at_level(logging.WARNING):
        cleaner.submit(["ckpt/shared/a", "ckpt/shared/b"])
        cleaner.close(PATIENCE)
    assert storage.exists("ckpt/shared/a")
    assert not storage.exists("ckpt/shared/b")
    assert "cannot delete unreferenced file" in caplog.text
    assert storage.describe("ckpt/shared/a") in caplog.text
    assert (cleaner.backlog, cleaner.undeleted) == (0, 1)


def test_files_that_wait_for_their_deletion_are_counted(storage: FaultyStorage) -> None:
    cleaner = ThreadCleaner(storage, NoClock())
    may_delete, delete = threading.Event(), storage.delete_all

    def wait(names: Sequence[str]) -> None:
        may_delete.wait(PATIENCE)
        delete(names)

    storage.delete_all = wait  # type: ignore[method-assign]
    cleaner.submit(["ckpt/shared/a", "ckpt/shared/b"])
    cleaner.submit(["ckpt/shared/a", "ckpt/chk-3/_metadata"])
    assert cleaner.backlog == 3
    may_delete.set()
    cleaner.close(PATIENCE)
    assert (cleaner.backlog, cleaner.undeleted) == (0, 0)


def test_the_deletion_of_records_is_durable_before_files_go(
    make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage
) -> None:
    cleaner = make(storage)
    cleaner.submit(["ckpt/shared/a", "ckpt/shared/b"])
    cleaner.close(PATIENCE)
    changes = [entry for entry in storage.log if entry[0] in ("sync", "delete")]
    assert changes == [("sync", "ckpt/completed"), ("delete", "ckpt/shared/a"), ("delete", "ckpt/shared/b")]


def test_files_stay_while_a_power_loss_could_bring_their_records_back(
    make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.fail("sync", "ckpt/completed", times=100)
    cleaner = make(storage)
    with caplog.at_level(logging.WARNING):
        cleaner.submit(["ckpt/shared/a"])
        cleaner.close(PATIENCE)
    assert storage.exists("ckpt/shared/a")
    assert "cannot delete" in caplog.text


class Refusing(FaultyStorage):
    """Storage that fails with an undocumented exception."""

    def delete_all(self, names: Sequence[str]) -> None:
        if any("odd" in name for name in names):
            raise RuntimeError("a library has failed")
        super().delete_all(names)

    def remove_empty(self, directory: str) -> None:
        raise RuntimeError("a library has failed")


@pytest.mark.parametrize("bad", ["ckpt/../../other/x", "ckpt/shared/odd"])
def test_no_name_stops_the_cleaner(
    make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    cleaner = make(Refusing(storage.inner))
    with caplog.at_level(logging.WARNING):
        cleaner.submit([bad, "ckpt/shared/a", "ckpt/chk-3/_metadata"])
        cleaner.submit(["ckpt/shared/b"])
        cleaner.close(PATIENCE)
    assert not [name for name in ("ckpt/shared/a", "ckpt/shared/b", "ckpt/chk-3/_metadata") if storage.exists(name)]
    assert bad in caplog.text
    assert "chk-3" in caplog.text


def test_a_thread_that_has_ended_is_started_again(storage: FaultyStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    cleaner = ThreadCleaner(storage, NoClock())
    with monkeypatch.context() as patched:
        patched.setattr(cleaner, "_run", lambda: None)
        cleaner.submit(["ckpt/shared/a"])
        assert cleaner._thread is not None
        cleaner._thread.join()
    cleaner.submit(["ckpt/shared/b"])
    cleaner.close(PATIENCE)
    assert not storage.exists("ckpt/shared/a")
    assert not storage.exists("ckpt/shared/b")
