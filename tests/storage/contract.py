"""What every storage must keep to. One subclass per storage."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator

import pytest

from spark_ckpt.errors import PathEscapeError, StateFileNotFoundError, StorageError
from spark_ckpt.storage import CreateOutcome, FileInfo, Storage, copying


class StorageContract(ABC):
    @abstractmethod
    @pytest.fixture
    def storage(self) -> Storage:
        """An empty storage."""

    def test_a_listing_says_when_a_file_was_written(self, storage: Storage) -> None:
        now_ms = time.time_ns() // 1_000_000
        storage.write_atomic("d/a", b"x")
        (file,) = storage.list("d")
        assert file.modified_ms is not None
        # In the right unit and zone; the storage's clock is its own.
        assert abs(file.modified_ms - now_ms) < 1_800_000

    def test_reads_what_was_written(self, storage: Storage) -> None:
        storage.write_atomic("a/b/file", b"content")
        assert storage.read("a/b/file") == b"content"
        assert storage.size("a/b/file") == 7
        assert storage.exists("a/b/file")

    def test_writes_in_place_of_a_file(self, storage: Storage) -> None:
        storage.write_atomic("file", b"first")
        storage.write_atomic("file", b"2")
        assert storage.read("file") == b"2"

    def test_writes_an_empty_file(self, storage: Storage) -> None:
        storage.write_atomic("a/empty", b"")
        assert storage.read("a/empty") == b""
        assert storage.size("a/empty") == 0

    def test_writes_in_parts(self, storage: Storage) -> None:
        storage.write_atomic("a/file", b"before")
        storage.write_chunks("a/file", lambda: iter((b"one", b"", b"two")))
        assert storage.read("a/file") == b"onetwo"

    def test_a_file_of_which_a_part_is_missing_is_not_shown(self, storage: Storage) -> None:
        def chunks() -> Iterator[bytes]:
            yield b"one"
            raise StorageError("elsewhere", "read", "gone")

        with pytest.raises(StorageError, match="elsewhere"):
            storage.write_chunks("a/file", chunks)
        assert not storage.exists("a/file")
        assert list(storage.list("a")) == []

    def test_copies_a_file_in_parts(self, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(copying, "CHUNK_BYTES", 4)
        monkeypatch.setattr(type(storage), "read", lambda self, name: pytest.fail(f"all of {name} is read"))
        content = bytes(range(10))
        storage.write_atomic("a/file", content)
        assert copying.copy_file(storage, "a/file", storage, "b/copy") == 10
        assert storage.read_range("b/copy", 0, 100) == content
        with pytest.raises(StateFileNotFoundError, match="a/none"):
            copying.copy_file(storage, "a/none", storage, "b/none")

    def test_a_directory_that_was_made_is_listed(self, storage: Storage) -> None:
        for _ in range(2):
            storage.make_directory("a/b")
        assert [(entry.name, entry.is_directory) for entry in storage.list("a")] == [("b", True)]

    def test_reads_a_range(self, storage: Storage) -> None:
        storage.write_atomic("a/file", b"0123456789")
        assert storage.read_range("a/file", 3, 4) == b"3456"
        assert storage.read_range("a/file", 8, 100) == b"89"

    def test_creates_where_there_is_none(self, storage: Storage) -> None:
        assert storage.create_exclusive("a/new", b"mine").outcome is CreateOutcome.WON
        assert storage.read("a/new") == b"mine"

    def test_a_second_create_loses_and_changes_nothing(self, storage: Storage) -> None:
        storage.create_exclusive("a/new", b"mine")
        assert storage.create_exclusive("a/new", b"yours").outcome is CreateOutcome.LOST
        assert storage.read("a/new") == b"mine"

    def test_creates_again_after_a_deletion(self, storage: Storage) -> None:
        storage.create_exclusive("a/new", b"1")
        storage.delete("a/new")
        assert storage.create_exclusive("a/new", b"2").outcome is CreateOutcome.WON

    def test_of_many_creates_at_once_one_wins(self, storage: Storage) -> None:
        for round_ in range(20):
            outcomes: list[CreateOutcome] = []
            barrier = threading.Barrier(6)

            def create(name: str, content: bytes, barrier: threading.Barrier = barrier) -> None:
                barrier.wait()
                outcomes.append(storage.create_exclusive(name, content).outcome)  # noqa: B023

            threads = [threading.Thread(target=create, args=(f"race/{round_}", b"%d" % i * 1000)) for i in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert Counter(outcomes) == {CreateOutcome.WON: 1, CreateOutcome.LOST: 5}
            assert len(set(storage.read(f"race/{round_}"))) == 1

    def test_lists_what_is_directly_below(self, storage: Storage) -> None:
        storage.write_atomic("top/one", b"1")
        storage.write_atomic("top/two", b"22")
        storage.write_atomic("top/sub/three", b"333")
        listed = sorted(storage.list("top"), key=lambda file: file.name)
        assert listed == [FileInfo("one", 1), FileInfo("sub", 0, is_directory=True), FileInfo("two", 2)]

    def test_lists_nothing_where_nothing_is(self, storage: Storage) -> None:
        assert list(storage.list("nowhere")) == []

    def test_lists_a_file_as_soon_as_it_is_there_and_no_longer(self, storage: Storage) -> None:
        for i in range(5):
            storage.create_exclusive(f"log/{i}", b"x")
            assert {file.name for file in storage.list("log")} == {str(n) for n in range(i + 1)}
        storage.delete("log/0")
        assert {file.name for file in storage.list("log")} == {"1", "2", "3", "4"}

    def test_deletes_once(self, storage: Storage) -> None:
        storage.write_atomic("a/file", b"x")
        assert storage.delete("a/file")
        assert not storage.exists("a/file")
        storage.delete("a/file")

    def test_deletes_many_files_whether_they_are_there_or_not(self, storage: Storage) -> None:
        for name in "abcd":
            storage.write_atomic(f"many/{name}", b"x")
        storage.delete_all(["many/a", "many/none", "many/c", "many/d"])
        assert [file.name for file in storage.list("many")] == ["b"]
        storage.delete_all([])
        assert storage.exists("many/b")

    def test_a_missing_file_is_a_typed_error_that_names_it(self, storage: Storage) -> None:
        for ask in (storage.read, storage.size):
            with pytest.raises(StateFileNotFoundError, match="nowhere/file") as caught:
                ask("nowhere/file")
            assert caught.value.path.endswith("nowhere/file")
            assert isinstance(caught.value, FileNotFoundError)

    def test_a_directory_is_no_file(self, storage: Storage) -> None:
        storage.write_atomic("dir/file", b"x")
        assert [entry.name for entry in storage.list("") if entry.is_directory] == ["dir"]

    @pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", "a\0b"])
    def test_refuses_names_that_lead_elsewhere(self, storage: Storage, name: str) -> None:
        with pytest.raises(PathEscapeError):
            storage.read(name)
        with pytest.raises(PathEscapeError):
            storage.write_atomic(name, b"x")

    def test_removing_a_directory_that_is_not_empty_does_nothing(self, storage: Storage) -> None:
        storage.write_atomic("dir/file", b"x")
        storage.remove_empty("dir")
        assert storage.read("dir/file") == b"x"
