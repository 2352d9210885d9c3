"""A storage in memory that all drivers share, and the faulty way each of them reaches it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from spark_ckpt.errors import StateFileNotFoundError, StorageError
from spark_ckpt.storage import CreateOutcome, CreateResult, FileInfo, Storage
from tests.simulation.scheduler import Group, Killed, Scheduler

T = TypeVar("T")


class Observer(Protocol):
    """Is told of every change of the storage, at once."""

    def created(self, name: str, data: bytes) -> None: ...

    def deleted(self, name: str, data: bytes) -> None: ...


class Disk:
    """The files, by name. What is done here is done: faults are a matter of the way to it."""

    def __init__(self) -> None:
        self.directories: dict[str, dict[str, bytes]] = {}
        self.dropped: set[str] = set()
        """Records that are gone."""
        self.observer: Observer | None = None

    def read(self, name: str) -> bytes | None:
        directory, _, base = name.rpartition("/")
        return self.directories.get(directory, {}).get(base)

    def write(self, name: str, data: bytes) -> None:
        directory, _, base = name.rpartition("/")
        self.directories.setdefault(directory, {})[base] = data
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
        if directory == "ckpt/completed":
            self.dropped.add(name)
        if not self.directories[directory]:
            del self.directories[directory]
        if self.observer is not None:
            self.observer.deleted(name, data)
        return True

    def list(self, directory: str) -> list[FileInfo]:
        files = [FileInfo(name, len(data)) for name, data in self.directories.get(directory, {}).items()]
        prefix = f"{directory}/"
        below = {name[len(prefix) :].split("/")[0] for name in self.directories if name.startswith(prefix)}
        return files + [FileInfo(name, 0, True) for name in sorted(below)]


@dataclass(slots=True)
class Faults:
    """How often an operation on the storage fails, and how: chances between 0 and 1.

    Args:
        error: nothing is done, and the caller is told so.
        error_after: it is done, and the caller is told that it failed, or that the outcome is unknown.
        late: it is carried out later, or never, and the caller is told as for `error_after`.
        exists: a create is done, and the caller is told that the file exists: a layer below repeated the request.
        kill: the process dies there, before the operation or after it.
        pause: others act before the operation and after it.
    """

    error: float = 0.0
    error_after: float = 0.0
    late: float = 0.0
    exists: float = 0.0
    kill: float = 0.0
    pause: float = 0.3

    def any(self) -> float:
        return self.error + self.error_after + self.late + self.exists


@dataclass(slots=True)
class Late:
    """Requests on their way that their senders have given up."""

    scheduler: Scheduler
    group: Group = field(default_factory=lambda: Group("network"))
    most_seconds: float = 30.0

    def send(self, seconds: float, request: Callable[[], object]) -> None:
        self.scheduler.spawn("late request", self.group, request, seconds)


class SimulatedStorage(Storage):
    """The way of one process to the disk.

    Args:
        disk: the files.
        group: the process.
        scheduler: for pauses.
        rng: draws the faults.
        faults: how often there are some.
        late: carries out requests later.
        count: is told of each fault.
        kill: kills the process.
    """

    def __init__(
        self,
        disk: Disk,
        group: Group,
        scheduler: Scheduler,
        rng: random.Random,
        faults: Faults,
        late: Late,
        count: Callable[[str], None],
        kill: Callable[[Group], None],
    ) -> None:
        super().__init__("sim://location")
        self._disk, self._group, self._scheduler, self._rng = disk, group, scheduler, rng
        self._faults, self._late, self._count, self._kill = faults, late, count, kill

    def read(self, name: str) -> bytes:
        data = self._reading("read", name, lambda: self._disk.read(name))
        if data is None:
            raise StateFileNotFoundError(self.describe(name))
        return data

    def size(self, name: str) -> int:
        return len(self.read(name))

    def list(self, directory: str) -> Sequence[FileInfo]:
        return self._reading("list", directory, lambda: self._disk.list(directory))

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
        if fault == "error":
            raise StorageError(self.describe(name), "create", fault)
        if fault == "exists":
            return CreateResult(CreateOutcome.LOST)
        if fault is not None:
            return CreateResult(CreateOutcome.UNKNOWN, TimeoutError(fault))
        return CreateResult(CreateOutcome.WON if won == [True] else CreateOutcome.LOST)

    def _reading(self, operation: str, name: str, body: Callable[[], T]) -> T:
        self._pause()
        if self._rng.random() < self._faults.error:
            self._count(f"{operation}: error")
            raise StorageError(self.describe(name), operation, "injected")
        return body()

    def _writing(self, operation: str, name: str, body: Callable[[], object]) -> str | None:
        """Carries out a change, or not.

        Returns:
            The fault that the caller meets, or None.
        """
        self._pause()
        self._maybe_die(f"killed before {operation}")
        drawn, faults = self._rng.random(), self._faults
        if drawn >= faults.any():
            body()
            self._maybe_die(f"killed after {operation}")
            self._pause()
            return None
        if drawn < faults.error:
            fault = "error"
        elif drawn < faults.error + faults.error_after:
            fault = "lost answer"
            body()
        elif drawn < faults.error + faults.error_after + faults.late:
            fault = "late"
            if self._rng.random() < 0.8:
                self._late.send(self._rng.random() ** 3 * self._late.most_seconds, lambda: self._arrive(name, body))
        elif operation == "create":
            fault = "exists"
            body()
        else:
            body()
            return None
        self._count(f"{operation}: {fault}")
        self._pause()
        return fault

    def _arrive(self, name: str, body: Callable[[], object]) -> None:
        """A late request is carried out, unless it would bring back a record that was dropped: only the process that
        has sent it knows that it may yet arrive, and it is that one which keeps the record so long.
        """
        if name in self._disk.dropped:
            self._count("late request for a dropped record (left out)")
        else:
            body()

    def _pause(self) -> None:
        if not self._group.alive:
            raise Killed
        if self._rng.random() < self._faults.pause:
            self._scheduler.sleep(self._rng.random() ** 2 * 0.2)

    def _maybe_die(self, how: str) -> None:
        if self._faults.kill and self._rng.random() < self._faults.kill:
            self._count(how)
            self._kill(self._group)
