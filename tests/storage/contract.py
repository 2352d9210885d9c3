"""Contract tests for storages; one subclass per storage."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage import CreateOutcome, FileInfo, Storage, Whose, copying, create_and_find
from spark_ckpt.storage.errors import PathEscapeError

ODD_NAMES = [
    "[1]",
    "*",
    "a?b",
    "{a,b}",
    "%2e%2e",
    "a%20b",
    "a b",
    "~",
    "$HOME",
    "a#b",
    "a;b",
    "a+b",
    "a&b=c",
    "ä",
    "[!a]",
]
"""Names that a layer between the package and the files could interpret as a pattern or an escape."""


class StorageContract(ABC):
    @abstractmethod
    @pytest.fixture
    def storages(self) -> Callable[[str], Storage]:
        """Factory of the storage with a given name, in an empty place."""

    @pytest.fixture
    def storage(self, storages: Callable[[str], Storage]) -> Storage:
        """Empty storage."""
        return storages("location")

    @pytest.mark.parametrize(
        ("odd", "like_it"), [("o[1]", "o1"), ("o*", "ox"), ("o?", "ox"), ("{o,x}", "o"), ("**", "x")]
    )
    def test_a_location_is_no_pattern(self, storages: Callable[[str], Storage], odd: str, like_it: str) -> None:
        storage, other = storages(odd), storages(like_it)
        names = ["d/a", "d/b", "d/c"]
        for name in names:
            other.write_atomic(name, b"other")
        assert list(storage.list("d")) == []
        assert not storage.exists("d/a")
        storage.delete_all(names)
        storage.delete("d/a")
        storage.remove_empty("d")
        assert [other.read(name) for name in names] == [b"other"] * 3
        for name in names:
            assert storage.create_exclusive(name, b"mine").outcome is CreateOutcome.WON
        assert {file.name for file in storage.list("d")} == {"a", "b", "c"}
        storage.delete_all(names[:2])
        storage.delete(names[2])
        assert list(storage.list("d")) == []
        assert [other.read(name) for name in names] == [b"other"] * 3

    @pytest.mark.parametrize("odd", ODD_NAMES)
    def test_a_name_is_literal(self, storages: Callable[[str], Storage], odd: str) -> None:
        """Odd names are literal in location, directory and file, next to files that they would match as patterns."""
        storage = storages(f"in {odd}")
        others = ["1", "x", "axb", "a", "b", "..x", "a-b", "!a"]
        for other in others:
            storage.write_atomic(f"d/{other}", b"other")
        name = f"d/{odd}"
        assert not storage.exists(name)
        assert storage.create_exclusive(name, b"one").outcome is CreateOutcome.WON
        assert storage.create_exclusive(name, b"two").outcome is CreateOutcome.LOST
        assert storage.read(name) == b"one"
        storage.write_atomic(name, b"three")
        assert (storage.read_range(name, 1, 2), storage.size(name)) == (b"hr", 5)
        assert {file.name for file in storage.list("d")} == {*others, odd}
        storage.write_chunks(f"e/{odd}/{odd}", lambda: (b"in", b"side"))
        assert [(file.name, file.is_directory) for file in storage.list("e")] == [(odd, True)]
        assert [(file.name, file.size) for file in storage.list(f"e/{odd}")] == [(odd, 6)]
        storage.delete_all([f"e/{odd}/{odd}"])
        assert not storage.exists(f"e/{odd}/{odd}")
        storage.delete_all([name])
        storage.delete(name)
        assert {file.name for file in storage.list("d")} == set(others)

    def test_a_listing_says_when_a_file_was_written(self, storage: Storage) -> None:
        now_ms = time.time_ns() // 1_000_000
        storage.write_atomic("d/a", b"x")
        (file,) = storage.list("d")
        assert file.modified_ms is not None
        # Checks unit and time zone only: the storage has its own clock.
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
        assert storage.read_range("a/file", 9, 1) == b"9"

    def test_a_range_past_the_end_is_empty(self, storage: Storage) -> None:
        storage.write_atomic("a/file", b"0123456789")
        storage.write_atomic("a/empty", b"")
        for name, offset, length in [
            ("a/file", 10, 1),
            ("a/file", 11, 5),
            ("a/file", 1_000_000, 5),
            ("a/file", 0, 0),
            ("a/file", 5, 0),
            ("a/empty", 0, 1),
            ("a/empty", 0, 0),
            ("a/empty", 7, 3),
        ]:
            assert storage.read_range(name, offset, length) == b"", (name, offset, length)
        for offset, length in ((0, 1), (5, 0)):
            with pytest.raises(StateFileNotFoundError, match="a/none"):
                storage.read_range("a/none", offset, length)

    def test_creates_where_there_is_none(self, storage: Storage) -> None:
        assert storage.create_exclusive("a/new", b"mine").outcome is CreateOutcome.WON
        assert storage.read("a/new") == b"mine"

    def test_a_second_create_loses_and_changes_nothing(self, storage: Storage) -> None:
        storage.create_exclusive("a/new", b"mine")
        assert storage.create_exclusive("a/new", b"yours").outcome is CreateOutcome.LOST
        assert storage.read("a/new") == b"mine"

    def test_a_create_that_finds_its_own_file_is_told_from_one_that_finds_another(self, storage: Storage) -> None:
        """A client below may have repeated the request, and reports that the file exists."""
        for again in (False, True):
            assert storage.create_exclusive(f"a/{again}", b"mine").outcome is CreateOutcome.WON
            found = create_and_find(storage, f"a/{again}", b"mine", again=again)
            assert (found.whose, found.may_arrive) == (Whose.MINE, False)
            found = create_and_find(storage, f"a/{again}", b"yours", again=again)
            assert (found.whose, found.there, found.may_arrive) == (Whose.OTHER, b"mine", False)

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
