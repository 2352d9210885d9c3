"""Storage through the driver on an in-memory Hadoop file system; `test_hdfs.py` uses a real HDFS."""

from __future__ import annotations

import random
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_ckpt.completed import JobStatus, Owner
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.errors import StorageError
from spark_ckpt.location.open_store import make_store
from spark_ckpt.storage import CreateOutcome, FsspecStorage, HadoopStorage, Storage, hadoop, resolve
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError, HadoopError
from tests.storage.contract import StorageContract
from tests.support.clocks import NoClock
from tests.support.hadoop import MemoryHadoop
from tests.support.provider import CKPT_PREFIX
from tests.support.waiting import PATIENCE
from tests.support.zookeeper import ZooKeeperServer

LOCATION = "hdfs://namenode:8020/q"


@pytest.fixture(autouse=True)
def no_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the clients of object stores, a driver reaches them through Hadoop."""
    for client in ("azure_client", "gcs_client"):
        monkeypatch.setitem(sys.modules, f"spark_ckpt.storage.{client}", None)


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


S3A, GCS = "org.apache.hadoop.fs.s3a.S3AFileSystem", "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
ABFS = "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem"
COSN = "org.apache.hadoop.fs.CosFileSystem"


@pytest.mark.parametrize(
    ("location", "class_name", "is_conditional", "operations"),
    [
        ("hdfs://x/q", "", False, ["write", "rename"]),
        ("viewfs://x/q", "", False, ["write", "rename"]),
        ("webhdfs://x/q", "", False, ["write", "rename"]),
        ("cluster://x/q", "org.apache.hadoop.hdfs.DistributedFileSystem", False, ["file_system", "write", "rename"]),
        ("abfss://x/q", ABFS, False, ["file_system", "write", "rename"]),
        ("gs://x/q", GCS, False, ["file_system", "write"]),
        ("store://x/q", S3A, True, ["file_system", "write"]),
    ],
)
def test_each_file_system_creates_exclusively_in_its_own_way(
    location: str, class_name: str, is_conditional: bool, operations: list[str]
) -> None:
    files = MemoryHadoop(class_name, is_conditional)
    storage = resolve(location, {}, files)
    assert storage.create_exclusive("a", b"1").outcome is CreateOutcome.WON
    assert [operation for operation, _ in files.operations] == operations
    assert storage.create_exclusive("a", b"2").outcome is CreateOutcome.LOST
    storage.probe("log")
    assert files.files == {f"{location}/a": b"1"}
    assert [operation for operation, _ in files.operations].count("file_system") == operations.count("file_system")


@pytest.mark.parametrize(("location", "class_name"), [("store://x/q", S3A), ("cosn://x/q", COSN)])
def test_a_file_system_of_which_nothing_is_known_cannot_fence(
    location: str, class_name: str, tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    files = MemoryHadoop(class_name)
    owner = Owner("host", 1, "token", "query", "run")
    store = make_store(CheckpointConfig.parse({}), resolve(location, {}, files), owner, NoClock())
    store.recover()
    with pytest.raises(ExclusiveCreateUnsupportedError, match=rf"{location}.*{class_name}.*'zookeeper'"):
        store.claim()
    assert files.files == {}
    settings = {"store": "zookeeper", "zookeeper.quorum": zookeeper.quorum, "zookeeper.path": f"/{uuid.uuid4().hex}"}
    config = CheckpointConfig.parse({f"{CKPT_PREFIX}{key}": value for key, value in settings.items()})
    store = make_store(config, resolve(location, {}, files), owner, NoClock())
    try:
        store.recover()
        assert store.claim().generation == 1
    finally:
        store.shutdown(JobStatus.SUSPENDED)
    assert list(files.files) == [f"{location}/ckpt/completed/{1:020d}.json"]


class RacingRename(MemoryHadoop):
    """File system whose rename looks for the target, and moves the file when two callers have looked."""

    def __init__(self) -> None:
        super().__init__(ABFS)
        self.looked: Counter[str] = Counter()
        self.both = threading.Condition()

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: Any
    ) -> tuple[Mapping[str, Any], bytes]:
        target = str(fields.get("target"))
        if operation == "rename" and not fields["overwrite"] and target not in self.files:
            with self.both:
                self.looked[target] += 1
                self.both.notify_all()
                assert self.both.wait_for(lambda: self.looked[target] > 1, PATIENCE)
            fields["overwrite"] = True
        return super().ask(operation, path, payload, **fields)


def test_a_file_system_is_probed_by_a_race() -> None:
    files = RacingRename()
    with pytest.raises(ExclusiveCreateUnsupportedError, match="several creates of one file"):
        resolve("abfss://x/q", {}, files).probe("log")
    assert files.files == {}


@pytest.mark.parametrize("way", [{"class_name": GCS}, {"class_name": S3A, "is_conditional": True}])
@pytest.mark.parametrize("size", [0, 99, 100, 101, 250])
def test_an_exclusive_file_of_several_frames(
    way: Mapping[str, Any], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hadoop, "FRAME_BYTES", 100)
    files = MemoryHadoop(**way)
    storage = HadoopStorage(files, "gs://x/q")
    content = random.Random(size).randbytes(size)
    assert storage.create_exclusive("a", content).outcome is CreateOutcome.WON
    assert storage.create_exclusive("a", b"other").outcome is CreateOutcome.LOST
    assert storage.read("a") == content


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
def test_an_error_on_the_way_leaves_no_temporary_file(operation: str, after: bool) -> None:
    """It leaves the outcome open only if the rename was begun."""
    storage, files = failing(operation, UNREACHABLE, after)
    result = storage.create_exclusive("a", b"1")
    assert result.outcome is (CreateOutcome.UNKNOWN if operation == "rename" else CreateOutcome.REFUSED)
    assert result.cause is UNREACHABLE
    assert list(files.files) == ([f"{LOCATION}/a"] if (operation, after) == ("rename", True) else [])


@pytest.mark.parametrize(
    ("operation", "outcome"), [("file_system", CreateOutcome.REFUSED), ("write", CreateOutcome.UNKNOWN)]
)
def test_an_error_of_a_create_under_its_own_name_leaves_the_outcome_open(
    operation: str, outcome: CreateOutcome
) -> None:
    files = Failing(operation, UNREACHABLE)
    files.class_name = GCS
    storage = HadoopStorage(files, "gs://x/q")
    storage._clock = NoClock()
    result = storage.create_exclusive("a", b"1")
    assert (result.outcome, result.cause) == (outcome, UNREACHABLE)


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
