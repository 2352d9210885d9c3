"""Storage through the driver on an in-memory Hadoop file system; `test_hdfs.py` uses a real HDFS."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, FsspecStorage, HadoopStorage, Storage, hadoop, resolve
from spark_ckpt.storage.errors import HadoopError
from tests.storage.contract import StorageContract
from tests.support.clocks import NoClock
from tests.support.hadoop import MemoryHadoop

LOCATION = "hdfs://namenode:8020/q"


class TestHadoopStorage(StorageContract):
    @pytest.fixture
    def storages(self) -> Callable[[str], Storage]:
        files = MemoryHadoop()
        return lambda name: HadoopStorage(files, f"{LOCATION}/{name}")


@pytest.fixture
def files() -> MemoryHadoop:
    return MemoryHadoop()


@pytest.fixture
def storage(files: MemoryHadoop) -> Storage:
    return HadoopStorage(files, LOCATION)


@pytest.mark.parametrize("location", ["hdfs://host:8020/q", "viewfs:/q", "wasb://x/q", "dbfs:/q"])
def test_serves_every_scheme_that_has_no_other_storage(location: str, files: MemoryHadoop) -> None:
    storage = resolve(location, {}, files)
    assert isinstance(storage, HadoopStorage)
    storage.write_atomic("a", b"1")
    assert files.files == {f"{location}/a": b"1"}
    assert storage.describe("a") == f"{location}/a"
    assert storage.requests_are_slow
    assert storage.defers_deletions


@pytest.mark.parametrize(("scheme", "warned"), [("hdfs", False), ("viewfs", False), ("webhdfs", False), ("gs", True)])
def test_warns_of_schemes_that_may_not_rename_atomically(
    scheme: str, warned: bool, files: MemoryHadoop, caplog: pytest.LogCaptureFixture
) -> None:
    resolve(f"{scheme}://x/q", {}, files)
    assert ("zookeeper" in caplog.text) is warned


def test_a_plain_path_may_be_on_the_default_file_system(files: MemoryHadoop) -> None:
    resolve("/q", {"fs.defaultFS": "hdfs://host"}, files).write_atomic("a", b"1")
    assert list(files.files) == ["hdfs://host/q/a"]


def test_what_fsspec_serves_does_not_go_through_the_driver(files: MemoryHadoop) -> None:
    assert not isinstance(resolve("memory://x/q", {}, files), HadoopStorage)


def test_a_file_is_renamed_when_it_is_whole_and_its_temporary_name_goes(storage: Storage, files: MemoryHadoop) -> None:
    storage.write_atomic("a", b"1")
    assert [operation for operation, _ in files.operations] == ["write", "rename"]
    temporary = files.operations[0][1]
    assert temporary.startswith(".tmp-")
    assert files.operations[1][1] == temporary
    storage.create_exclusive("a", b"2")
    assert [operation for operation, _ in files.operations[2:]] == ["write", "rename", "delete"]
    assert list(files.files) == [f"{LOCATION}/a"]


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 250, 300])
def test_no_message_is_longer_than_a_frame(
    size: int, storage: Storage, files: MemoryHadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop, "FRAME_BYTES", 100)
    content = random.Random(size).randbytes(size)
    storage.write_atomic("a", content)
    assert storage.read("a") == content
    assert max(files.payloads, default=0) <= 100
    assert sum(files.payloads) == 2 * size
    for offset, length in ((0, size), (50, 180), (size, 10), (99, 1), (99, 102), (100, 100), (0, 0), (size + 7, 5)):
        assert storage.read_range("a", offset, length) == content[offset : offset + length]


def test_a_range_is_read_without_the_rest(storage: Storage, files: MemoryHadoop) -> None:
    storage.write_atomic("a", bytes(1000))
    files.payloads.clear()
    storage.read_range("a", 10, 5)
    assert files.payloads == [5]


def test_an_empty_directory_is_removed(storage: Storage, files: MemoryHadoop) -> None:
    storage.write_atomic("chk-1/_metadata", b"1")
    storage.delete("chk-1/_metadata")
    storage.remove_empty("chk-1")
    assert list(storage.list("")) == []
    storage.remove_empty("chk-1")


class Failing(MemoryHadoop):
    """File system with one failing operation, which raises before or after it takes effect."""

    def __init__(self, operation: str, error: Exception, after: bool = False) -> None:
        super().__init__()
        self.failing, self.error, self.after = operation, error, after

    def ask(self, operation: str, path: str, *args: Any, **fields: Any) -> tuple[Mapping[str, Any], bytes]:
        if operation == self.failing and not self.after:
            raise self.error
        answer = super().ask(operation, path, *args, **fields)
        if operation == self.failing:
            raise self.error
        return answer


def failing(operation: str, error: Exception, after: bool = False) -> tuple[FsspecStorage, Failing]:
    files = Failing(operation, error, after)
    storage = HadoopStorage(files, LOCATION)
    storage._clock = NoClock()
    return storage, files


UNREACHABLE = HadoopError(LOCATION, "java.net.ConnectException", "Connection refused")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("operation", ["write", "rename"])
def test_an_error_on_the_way_leaves_the_outcome_open_and_no_temporary_file(operation: str, after: bool) -> None:
    storage, files = failing(operation, UNREACHABLE, after)
    result = storage.create_exclusive("a", b"1")
    assert result.outcome is CreateOutcome.UNKNOWN
    assert result.cause is UNREACHABLE
    assert list(files.files) == ([f"{LOCATION}/a"] if (operation, after) == ("rename", True) else [])


def test_a_temporary_file_that_vanished_leaves_the_outcome_open() -> None:
    """A client that repeats its rename gets this error if its first request has moved the file."""
    storage, _ = failing("rename", FileNotFoundError("File does not exist"), after=True)
    result = storage.create_exclusive("a", b"1")
    assert result.outcome is CreateOutcome.UNKNOWN
    assert "disappeared" in str(result.cause)
    assert storage.read("a") == b"1"
    with pytest.raises(StorageError, match=r"cannot write .*disappeared"):
        storage.write_atomic("b", b"1")


def test_no_permission_is_certain(files: MemoryHadoop) -> None:
    storage, _ = failing("write", PermissionError("AccessControlException: Permission denied: user=nobody"))
    for write in (storage.write_atomic, storage.create_exclusive):
        with pytest.raises(StorageError, match="user=nobody"):
            write("a", b"1")


def test_the_stack_of_a_namenode_stays_out_of_the_message() -> None:
    error = HadoopError(
        "hdfs:/x", "a.SafeModeException", "Cannot create\nName node is in safe mode.\n\tat a.B.c(B.java:1)"
    )
    assert str(error) == "a.SafeModeException: Cannot create\nName node is in safe mode."
    assert (error.java_class, error.path) == ("a.SafeModeException", "hdfs:/x")
