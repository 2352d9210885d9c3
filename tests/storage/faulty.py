"""Storage with injected faults, by operation and file name."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome, CreateResult, FileInfo, Storage


class Fault(Enum):
    ERROR = "nothing is done, and the caller is told so"
    LOST_ANSWER = "it is done, and the caller is told that it is unknown"
    LOST_REQUEST = "nothing is done, and the caller is told that it is unknown"
    LATE = "it is done when `deliver` is called, and the caller is told that it is unknown"
    REFUSED = "nothing is done, and the caller is told that nothing will be"
    EXISTS_AFTER_DONE = "it is done, and the caller is told that the file exists (a layer below repeated the request)"


@dataclass
class Rule:
    operation: str
    pattern: str
    fault: Fault
    times: int = 1


class FaultyStorage(Storage):
    def __init__(self, inner: Storage) -> None:
        super().__init__(inner.location)
        self.inner = inner
        self.requests_are_dear = inner.requests_are_slow
        self.rules: list[Rule] = []
        self.log: list[tuple[str, str]] = []
        self.before: Callable[[str, str], None] = lambda operation, name: None
        self._late: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    @property
    def requests_are_slow(self) -> bool:
        return self.requests_are_dear

    @property
    def defers_deletions(self) -> bool:
        return self.requests_are_dear

    @property
    def writes_whole(self) -> bool:
        return self.inner.writes_whole

    def fail(self, operation: str, pattern: str, fault: Fault = Fault.ERROR, times: int = 1) -> None:
        self.rules.append(Rule(operation, pattern, fault, times))

    def deliver(self) -> None:
        """Carries out the late requests."""
        for request in self._late:
            request()
        self._late.clear()

    def lose(self) -> None:
        """Discards the late requests."""
        self._late.clear()

    def read(self, name: str) -> bytes:
        self._plain("read", name)
        return self.inner.read(name)

    def write_atomic(self, name: str, data: bytes) -> None:
        fault = self._fault("write", name)
        if fault is Fault.LATE:
            self._late.append(lambda: self.inner.write_atomic(name, data))
        elif fault in (None, Fault.LOST_ANSWER):
            self.inner.write_atomic(name, data)
        if fault is not None:
            raise StorageError(self.describe(name), "write", f"injected: {fault.name}")

    def create_exclusive(self, name: str, data: bytes) -> CreateResult:
        fault = self._fault("create", name)
        if fault is None:
            return self.inner.create_exclusive(name, data)
        if fault is Fault.ERROR:
            raise StorageError(self.describe(name), "create", "injected")
        if fault is Fault.REFUSED:
            return CreateResult(CreateOutcome.REFUSED, ConnectionRefusedError("injected"))
        if fault is Fault.LATE:
            self._late.append(lambda: self.inner.create_exclusive(name, data))
        elif fault is not Fault.LOST_REQUEST:
            self.inner.create_exclusive(name, data)
        if fault is Fault.EXISTS_AFTER_DONE:
            return CreateResult(CreateOutcome.LOST)
        return CreateResult(CreateOutcome.UNKNOWN, TimeoutError("injected"))

    def make_durable(self, name: str) -> None:
        self._plain("make durable", name)
        self.inner.make_durable(name)

    def list(self, directory: str) -> Sequence[FileInfo]:
        self._plain("list", directory)
        return self.inner.list(directory)

    def delete(self, name: str) -> bool:
        self._plain("delete", name)
        return self.inner.delete(name)

    def sync_deletions(self, directory: str) -> None:
        self._plain("sync", directory)
        self.inner.sync_deletions(directory)

    def size(self, name: str) -> int:
        self._plain("size", name)
        return self.inner.size(name)

    def first_link(self, directory: str) -> str | None:
        return self.inner.first_link(directory)

    def remove_empty(self, directory: str) -> None:
        self.inner.remove_empty(directory)

    def _plain(self, operation: str, name: str) -> None:
        if self._fault(operation, name) is not None:
            raise StorageError(self.describe(name), operation, "injected")

    def _fault(self, operation: str, name: str) -> Fault | None:
        self.before(operation, name)
        with self._lock:
            self.log.append((operation, name))
            for rule in self.rules:
                if rule.times and rule.operation == operation and re.search(rule.pattern, name):
                    rule.times -= 1
                    return rule.fault
        return None
