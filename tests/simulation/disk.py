"""A storage in memory, shared by all drivers, and each process's access to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage import CreateOutcome, CreateResult, FileInfo, Request, Storage
from tests.simulation.faults import Way

T = TypeVar("T")


FOREIGN_FILES = ("ckpt/shared/payroll.parquet", "ckpt/shared/merged-report.csv", "ckpt/chk-1/notes.txt", "ckpt/keep.me")
"""Files of other origin in our directories."""


class Observer(Protocol):
    """Notified at once of every file or node that is created or deleted."""

    def created(self, name: str, data: bytes) -> None: ...

    def deleted(self, name: str) -> None: ...


class Disk:
    """The files, by name. Operations here always succeed: faults belong to the way to the disk.

    Args:
        now_ms: clock for the files' modification times.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.directories: dict[str, dict[str, bytes]] = {}
        self.dropped: set[str] = set()
        """Deleted records."""
        self.observer: Observer | None = None
        self._now_ms = now_ms
        self._modified_ms: dict[str, int] = {}
        self._deleted: dict[str, dict[str, tuple[int, FileInfo]]] = {}
        """Deleted files that a listing may still show, with the time of deletion, by directory and name."""

    def read(self, name: str) -> bytes | None:
        directory, _, base = name.rpartition("/")
        return self.directories.get(directory, {}).get(base)

    def write(self, name: str, data: bytes) -> None:
        directory, _, base = name.rpartition("/")
        self.directories.setdefault(directory, {})[base] = data
        self._modified_ms[name] = self._now_ms()
        if self.observer is not None:
            self.observer.created(name, data)

    def create(self, name: str, data: bytes) -> bool:
        if self.read(name) is not None:
            return False
        self.write(name, data)
        return True

    def delete(self, name: str) -> bool:
        directory, _, base = name.rpartition("/")
        data = self.directories.get(directory, {}).pop(base, None)
        if data is None:
            return False
        entry = FileInfo(base, len(data), modified_ms=self._modified_ms[name])
        self._deleted.setdefault(directory, {})[base] = self._now_ms(), entry
        if directory == "ckpt/completed":
            self.dropped.add(name)
        if not self.directories[directory]:
            del self.directories[directory]
        if self.observer is not None:
            self.observer.deleted(name)
        return True

    def list(self, directory: str, lag: float = 0.0) -> list[FileInfo]:
        """Content of a directory, including files deleted in the last `lag` seconds."""
        prefix = f"{directory}/"
        files = [
            FileInfo(name, len(data), modified_ms=self._modified_ms[prefix + name])
            for name, data in self.directories.get(directory, {}).items()
        ]
        below = {name[len(prefix) :].split("/")[0] for name in self.directories if name.startswith(prefix)}
        if lag and directory in self._deleted:
            since, there = self._now_ms() - int(1000 * lag), self.directories.get(directory, {})
            files += [
                entry for at, entry in self._deleted[directory].values() if at > since and entry.name not in there
            ]
        return files + [FileInfo(name, 0, True) for name in sorted(below)]


class SimulatedStorage(Storage):
    """The disk as seen by one process.

    Args:
        disk: the files.
        way: the process's way to them.
        is_remote: whether it is an object store: requests are expensive, and a write without an error is complete.
        lag: seconds for which a listing may show a deleted file. Contract 3 of `Storage` promises only that a listing
            shows the files written.
    """

    def __init__(self, disk: Disk, way: Way, is_remote: bool = False, lag: float = 0.0) -> None:
        super().__init__("sim://location")
        self._disk, self._way, self._is_remote, self._lag = disk, way, is_remote, lag

    @property
    def requests_are_slow(self) -> bool:
        return self._is_remote

    @property
    def defers_deletions(self) -> bool:
        return self._is_remote

    @property
    def writes_whole(self) -> bool:
        return self._is_remote

    @property
    def renames(self) -> bool:
        return not self._is_remote

    def begin(self, call: Callable[[], T]) -> Request[T]:
        """The answer is as old as the request may be: a remote storage is asked at once, or when it is needed."""
        request = Request(call)
        if self._is_remote and self._way.rng.random() < 0.5:
            request.run()
        return request

    def read(self, name: str) -> bytes:
        data = self._reading("read", name, lambda: self._disk.read(name))
        if data is None:
            raise StateFileNotFoundError(self.describe(name))
        return data

    def size(self, name: str) -> int:
        return len(self.read(name))

    def list(self, directory: str) -> Sequence[FileInfo]:
        lag = self._lag if self._lag and self._way.rng.random() < 0.5 else 0.0
        return self._reading("list", directory, lambda: self._disk.list(directory, lag))

    def write_atomic(self, name: str, data: bytes) -> None:
        if (fault := self._writing("write", name, lambda: self._disk.write(name, bytes(data)))) is not None:
            raise StorageError(self.describe(name), "write", fault)

    def delete(self, name: str) -> bool:
        there = self._disk.read(name) is not None
        if (fault := self._writing("delete", name, lambda: self._disk.delete(name))) is not None:
            raise StorageError(self.describe(name), "delete", fault)
        return there

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        won: list[bool] = []
        fault = self._writing("create", name, lambda: won.append(self._disk.create(name, data)))
        if fault == "error" and self._is_remote and self._way.rng.random() < 0.5:
            return CreateResult(CreateOutcome.REFUSED, ConnectionRefusedError(fault))
        if fault == "error":
            raise StorageError(self.describe(name), "create", fault)
        if fault == "exists":
            return CreateResult(CreateOutcome.LOST)
        if fault is not None:
            return CreateResult(CreateOutcome.UNKNOWN, TimeoutError(fault))
        return CreateResult(CreateOutcome.WON if won == [True] else CreateOutcome.LOST)

    def _reading(self, operation: str, name: str, body: Callable[[], T]) -> T:
        if self._way.is_cut(operation):
            raise StorageError(self.describe(name), operation, "injected")
        return body()

    def _writing(self, operation: str, name: str, body: Callable[[], object]) -> str | None:
        fault = self._way.carry_out(operation, body)
        if fault == "late":
            self._way.later(lambda: self._arrive(name, body))
        return fault

    def _arrive(self, name: str, body: Callable[[], object]) -> None:
        """Carries out a late request, unless it would bring back a deleted record: only the process that sent the
        request knows that it may still arrive, and the same process keeps the record until then."""
        if name in self._disk.dropped:
            self._way.count("late request for a dropped record (left out)")
        else:
            body()
