from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.coordinator.cleaner import Cleaner, ImmediateCleaner, ThreadCleaner
from spark_ckpt.storage import LocalStorage
from tests.storage.faulty import FaultyStorage
from tests.storage.test_remote import NoClock


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
    cleaner.close(10)
    assert not storage.exists("ckpt/shared/a")
    assert storage.exists("ckpt/shared/b")
    assert {entry.name for entry in storage.list("ckpt")} == {"shared"}


def test_deletes_a_file_once(make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage) -> None:
    cleaner = make(storage)
    for _ in range(3):
        cleaner.submit(["ckpt/shared/a"])
    cleaner.close(10)
    assert storage.log.count(("delete", "ckpt/shared/a")) == 1
    assert cleaner.was_submitted("ckpt/shared/a")
    assert not cleaner.was_submitted("ckpt/shared/b")


def test_tries_again(make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage) -> None:
    storage.fail("delete", "shared/a", times=2)
    cleaner = make(storage)
    cleaner.submit(["ckpt/shared/a"])
    cleaner.close(10)
    assert not storage.exists("ckpt/shared/a")


def test_gives_up_and_goes_on(
    make: Callable[[FaultyStorage], Cleaner], storage: FaultyStorage, caplog: pytest.LogCaptureFixture
) -> None:
    storage.fail("delete", "shared/a", times=100)
    cleaner = make(storage)
    with caplog.at_level(logging.WARNING):
        cleaner.submit(["ckpt/shared/a", "ckpt/shared/b"])
        cleaner.close(10)
    assert storage.exists("ckpt/shared/a")
    assert not storage.exists("ckpt/shared/b")
    assert "left behind" in caplog.text
    assert storage.describe("ckpt/shared/a") in caplog.text
