from __future__ import annotations

import errno
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, LocalStorage, Storage, Whose, create_and_find, create_or_find
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from tests.storage.contract import StorageContract


class TestLocalStorage(StorageContract):
    @pytest.fixture
    def storages(self, tmp_path: Path) -> Callable[[str], Storage]:
        return lambda name: LocalStorage(tmp_path / name)


class TestLocalStorageThatIsNotDurable(StorageContract):
    @pytest.fixture
    def storages(self, tmp_path: Path) -> Callable[[str], Storage]:
        return lambda name: LocalStorage(tmp_path / name, durable=False)


def _race(directory: str, contender: int, rounds: int) -> list[int]:
    storage = LocalStorage(directory)
    return [
        round_
        for round_ in range(rounds)
        if storage.create_exclusive(f"race/{round_}", b"%d" % contender * 500).outcome is CreateOutcome.WON
    ]


def test_of_several_processes_one_wins_each_race(tmp_path: Path) -> None:
    rounds = 150
    with multiprocessing.get_context("fork").Pool(4) as pool:
        won = pool.starmap(_race, [(str(tmp_path), contender, rounds) for contender in range(4)])
    assert sorted(round_ for rounds_won in won for round_ in rounds_won) == list(range(rounds))
    for contender, rounds_won in enumerate(won):
        for round_ in rounds_won:
            assert (tmp_path / "race" / str(round_)).read_bytes() == b"%d" % contender * 500


def test_leaves_no_temporary_files(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write_atomic("a/one", b"1")
    storage.create_exclusive("a/two", b"2")
    storage.create_exclusive("a/two", b"3")
    assert sorted(os.listdir(tmp_path / "a")) == ["one", "two"]


def test_does_not_list_files_that_are_being_written(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write_atomic("a/one", b"1")
    (tmp_path / "a" / ".tmp-abc").write_bytes(b"half")
    assert [file.name for file in storage.list("a")] == ["one"]
    os.utime(tmp_path / "a" / ".tmp-abc", (0, 0))  # left by a crash long ago
    assert {file.name for file in storage.list("a")} == {"one", ".tmp-abc"}


def test_deletes_the_checksum_file_that_hadoop_puts_beside_a_file(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.write_atomic("a/one", b"1")
    (tmp_path / "a" / ".one.crc").write_bytes(b"crc")
    storage.delete("a/one")
    assert os.listdir(tmp_path / "a") == []


def test_a_repeated_link_that_finds_itself_has_won(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def link_whose_answer_is_lost(source: Path, target: Path) -> None:
        link(source, target)
        raise FileExistsError(errno.EEXIST, "File exists", str(target))

    monkeypatch.setattr(os, "link", link_whose_answer_is_lost)
    assert LocalStorage(tmp_path).create_exclusive("a/file", b"mine").outcome is CreateOutcome.WON


def test_a_mount_without_hard_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(ExclusiveCreateUnsupportedError, match="no hard links"):
        LocalStorage(tmp_path).create_exclusive("a/file", b"mine")
    assert os.listdir(tmp_path / "a") == []


def test_an_input_output_error_leaves_the_outcome_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: Path, target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", fail)
    result = LocalStorage(tmp_path).create_exclusive("a/file", b"mine")
    assert result.outcome is CreateOutcome.UNKNOWN
    assert isinstance(result.cause, OSError)


def test_a_full_disk_is_a_typed_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    storage = LocalStorage(tmp_path)
    for write in (storage.write_atomic, storage.create_exclusive):
        with pytest.raises(StorageError, match="a/file: No space left") as caught:
            write("a/file", b"x")
        assert caught.value.path == str(tmp_path / "a" / "file")
    assert os.listdir(tmp_path / "a") == []


def test_a_location_below_a_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="file"):
        LocalStorage(tmp_path / "file").write_atomic("a/b", b"x")


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Synced directories, relative to the test's directory; `*` for a file being written."""
    names: list[str] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        names.append(os.path.relpath(path, tmp_path) if path.is_dir() else "*")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return names


@pytest.mark.parametrize("write", ["create_exclusive", "write_atomic"])
def test_the_name_of_every_new_directory_is_synced(tmp_path: Path, synced: list[str], write: str) -> None:
    storage = LocalStorage(tmp_path / "a" / "location")
    getattr(storage, write)("ckpt/chk-7/_metadata", b"x")
    assert synced == ["*", "a/location/ckpt/chk-7", "a/location/ckpt", "a/location", "a", "."]
    synced.clear()
    getattr(storage, write)("ckpt/chk-8/_metadata", b"x")
    assert synced == ["*", "a/location/ckpt/chk-8", "a/location/ckpt"]
    synced.clear()
    getattr(storage, write)("ckpt/chk-8/other", b"x")
    assert synced == ["*", "a/location/ckpt/chk-8"]


def test_the_name_of_a_directory_that_another_process_made_is_synced(tmp_path: Path, synced: list[str]) -> None:
    """The other process may have crashed before its own sync."""
    (tmp_path / "ckpt" / "chk-7").mkdir(parents=True)
    LocalStorage(tmp_path).create_exclusive("ckpt/chk-7/_metadata", b"x")
    assert synced == ["*", "ckpt/chk-7", "ckpt", "."]


def test_a_directory_that_was_removed_is_synced_anew(tmp_path: Path, synced: list[str]) -> None:
    storage = LocalStorage(tmp_path)
    for _ in range(2):
        synced.clear()
        storage.write_atomic("ckpt/chk-7/_metadata", b"x")
        assert synced[:3] == ["*", "ckpt/chk-7", "ckpt"]
        storage.delete("ckpt/chk-7/_metadata")
        storage.remove_empty("ckpt/chk-7")


def test_a_directory_that_is_made_is_synced(tmp_path: Path, synced: list[str]) -> None:
    LocalStorage(tmp_path).make_directory("state/0/3")
    assert synced == ["state/0/3", "state/0", "state", "."]


def test_deletions_in_a_directory_are_synced(tmp_path: Path, synced: list[str]) -> None:
    storage = LocalStorage(tmp_path)
    storage.sync_deletions("ckpt/completed")
    assert synced == []
    storage.write_atomic("ckpt/completed/a", b"x")
    synced.clear()
    storage.delete("ckpt/completed/a")
    storage.sync_deletions("ckpt/completed")
    assert synced == ["ckpt/completed"]


def test_deletions_that_cannot_be_synced_are_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    storage = LocalStorage(tmp_path)
    storage.make_directory("ckpt/completed")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError, match="ckpt/completed"):
        storage.sync_deletions("ckpt/completed")


def test_what_need_not_be_durable_is_not_synced(tmp_path: Path, synced: list[str]) -> None:
    storage = LocalStorage(tmp_path, durable=False)
    storage.write_atomic("a/b", b"x")
    storage.make_directory("c")
    storage.sync_deletions("c")
    assert synced == []


class Syncs:
    """Syncs that fail from the one of number `first` on, counted from 0."""

    def __init__(self, sync: Callable[[int], None]) -> None:
        self.first, self.count, self._sync = 1_000_000, 0, sync

    def fail_from(self, first: int) -> None:
        self.first, self.count = first, 0

    def __call__(self, descriptor: int) -> None:
        self.count += 1
        if self.count > self.first:
            raise OSError(errno.EIO, "Input/output error")
        self._sync(descriptor)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    syncs = Syncs(os.fsync)
    monkeypatch.setattr(os, "fsync", syncs)
    return syncs


SYNCING: dict[str, Callable[[LocalStorage], object]] = {
    "write_atomic": lambda storage: storage.write_atomic("ckpt/chk-7/_metadata", b"x"),
    "write_chunks": lambda storage: storage.write_chunks("ckpt/chk-7/_metadata", lambda: (b"x", b"y")),
    "create_or_find": lambda storage: create_or_find(storage, "ckpt/chk-7/_metadata", b"x", 4),
    "make_directory": lambda storage: storage.make_directory("ckpt/chk-7"),
    "make_durable": lambda storage: storage.make_durable("there/file"),
    "sync_deletions": lambda storage: storage.sync_deletions("there"),
}


@pytest.mark.parametrize("operation", SYNCING)
def test_no_sync_that_failed_counts_as_success(tmp_path: Path, syncs: Syncs, operation: str) -> None:
    def storage(name: str) -> LocalStorage:
        (tmp_path / name / "there").mkdir(parents=True)
        (tmp_path / name / "there" / "file").write_bytes(b"x")
        return LocalStorage(tmp_path / name)

    SYNCING[operation](storage("whole"))
    most = syncs.count
    assert most > 0
    for first in range(most):
        failing = storage(f"{first}")
        syncs.fail_from(first)
        with pytest.raises(StorageError, match="Input/output error"):
            SYNCING[operation](failing)
        syncs.fail_from(1_000_000)
        SYNCING[operation](failing)  # it can be tried again


def test_a_record_whose_name_could_not_be_synced_is_not_ours(tmp_path: Path, syncs: Syncs) -> None:
    storage = LocalStorage(tmp_path)
    pauses: list[int] = []
    storage.write_atomic("log/0", b"")

    syncs.fail_from(1)  # the file can be synced, its directory cannot
    result = storage.create_exclusive("log/1", b"mine")
    assert (result.outcome, type(result.cause)) == (CreateOutcome.LOST, OSError)
    syncs.fail_from(1)
    found = create_and_find(storage, "log/2", b"mine", 4, pause=lambda: pauses.append(1), overtaken=lambda: False)
    assert (found.whose, found.may_arrive, len(pauses)) == (Whose.UNKNOWN, False, 3)
    syncs.fail_from(1_000_000)
    found = create_and_find(storage, "log/2", b"mine", 4, again=True, overtaken=lambda: False)
    assert (found.whose, found.may_arrive) == (Whose.MINE, False)
