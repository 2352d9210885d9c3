from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, FsspecStorage, Storage
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from spark_ckpt.storage.remote import READERS
from tests.storage.contract import StorageContract
from tests.support.clocks import NoClock
from tests.support.memory_storage import memory_storage, memory_storages
from tests.support.waiting import PATIENCE


class TestMemoryStorage(StorageContract):
    @pytest.fixture
    def storages(self) -> Callable[[str], Storage]:
        return memory_storages()


class Flaky(MemoryFileSystem):  # type: ignore[misc]
    """File system that raises an error a given number of times."""

    cachable = False

    def __init__(self, error: Exception, times: int) -> None:
        super().__init__()
        self.error, self.times = error, times

    def _fail(self) -> None:
        if self.times:
            self.times -= 1
            raise self.error

    def cat_file(self, *args: Any, **kwargs: Any) -> bytes:
        self._fail()
        return bytes(super().cat_file(*args, **kwargs))

    def pipe_file(self, *args: Any, **kwargs: Any) -> None:
        self._fail()
        super().pipe_file(*args, **kwargs)


class AllAtOnce(MemoryFileSystem):  # type: ignore[misc]
    """File system that blocks reads until `readers` of them wait."""

    cachable = False

    def __init__(self, readers: int) -> None:
        super().__init__()
        self.barrier = threading.Barrier(readers, timeout=PATIENCE)

    def cat_file(self, *args: Any, **kwargs: Any) -> bytes:
        self.barrier.wait()
        return b"x"


def test_the_records_of_a_log_are_read_side_by_side() -> None:
    storage = FsspecStorage(AllAtOnce(READERS), "/log", "http://log", NoClock())
    names = [str(i) for i in range(READERS)]
    assert storage.read_many(names) == dict.fromkeys(names, b"x")
    assert READERS >= 64


def flaky(error: Exception, times: int) -> tuple[FsspecStorage, NoClock]:
    clock = NoClock()
    return FsspecStorage(Flaky(error, times), f"/{uuid.uuid4().hex}", "memory://flaky", clock), clock


def test_transient_errors_are_retried_with_growing_pauses() -> None:
    storage, clock = flaky(ConnectionError("reset"), 0)
    storage.write_atomic("file", b"x")
    assert isinstance(storage._fs, Flaky)
    storage._fs.times = 5
    assert storage.read("file") == b"x"
    assert clock.slept == [0.2, 0.4, 0.8, 1.6, 3.2]


def test_errors_that_stay_are_reported_after_a_bounded_number_of_tries() -> None:
    storage, clock = flaky(TimeoutError("slow"), 100)
    with pytest.raises(StorageError, match=r"write memory://flaky/file: slow \(6 tries\)\. If the storage is slow"):
        storage.write_atomic("file", b"x")
    assert len(clock.slept) == 5


def test_a_refusal_is_not_retried() -> None:
    storage, clock = flaky(PermissionError("denied"), 100)
    with pytest.raises(StorageError, match="denied"):
        storage.write_atomic("file", b"x")
    with pytest.raises(StorageError, match="denied"):
        storage.create_exclusive("file", b"x")
    assert clock.slept == []


def test_an_error_after_the_request_left_makes_the_outcome_unknown() -> None:
    storage, _ = flaky(TimeoutError("slow"), 1)
    result = storage.create_exclusive("file", b"x")
    assert result.outcome is CreateOutcome.UNKNOWN
    assert isinstance(result.cause, TimeoutError)


class IgnoresTheCondition(MemoryFileSystem):  # type: ignore[misc]
    cachable = False

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        super().pipe_file(path, value, **kwargs)


def test_the_probe_refuses_a_server_that_ignores_the_condition() -> None:
    storage = FsspecStorage(IgnoresTheCondition(), "/bucket", "s3://bucket")
    with pytest.raises(ExclusiveCreateUnsupportedError, match="s3://bucket"):
        storage.probe("a")
    assert list(storage.list("a")) == []


class LooksFirst(MemoryFileSystem):  # type: ignore[misc]
    """File system that looks for a file, and writes it when two callers have looked."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.looked: Counter[str] = Counter()
        self.both = threading.Condition()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        if mode == "create":
            if self.exists(path):
                raise FileExistsError(path)
            with self.both:
                self.looked[path] += 1
                self.both.notify_all()
                assert self.both.wait_for(lambda: self.looked[path] > 1, PATIENCE)
        super().pipe_file(path, value, **kwargs)


def test_the_probe_refuses_a_storage_that_looks_and_then_writes() -> None:
    storage = FsspecStorage(LooksFirst(), f"/{uuid.uuid4().hex}", "https://looks-first")
    with pytest.raises(ExclusiveCreateUnsupportedError, match=r"https://looks-first.*several creates"):
        storage.probe("a")
    assert list(storage.list("a")) == []


def test_the_probe_leaves_nothing() -> None:
    storage = memory_storage()
    storage.probe("a")
    assert list(storage.list("a")) == []


@pytest.mark.parametrize("name", ["code", "status_code", "status"])
def test_a_range_that_a_client_refuses_is_past_the_end(name: str) -> None:
    error = RuntimeError("Requested range not satisfiable")
    setattr(error, name, 416)
    storage, clock = flaky(error, 1)
    assert storage.read_range("file", 7, 1) == b""
    assert clock.slept == []
    setattr(error, name, 500)
    storage, clock = flaky(error, 6)
    with pytest.raises(StorageError, match="Requested range"):
        storage.read_range("file", 7, 1)
