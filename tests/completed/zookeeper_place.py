"""ZooKeeper stores with injected losses of requests and answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_ckpt.completed import (
    CheckpointRecord,
    FilesystemCompletedCheckpointStore,
)
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from spark_ckpt.storage import LocalStorage, Storage
from tests.completed.records import owner
from tests.storage.faulty import Fault
from tests.support.clocks import NoClock
from tests.support.zookeeper import SESSION_SECONDS, ZooKeeperServer


class FaultySession(ZooKeeperSession):
    """Session that injects `faults` into its transactions, in order."""

    def __init__(self, quorum: str, timeout: float = SESSION_SECONDS) -> None:
        super().__init__(quorum, timeout)
        self.faults: list[Fault] = []
        self.late: list[Callable[[Any], None]] = []

    def commit(self, build: Callable[[Any], None]) -> Sequence[Any] | None:
        fault = self.faults.pop(0) if self.faults else None
        if fault in (None, Fault.LOST_ANSWER):
            done = super().commit(build)
            if fault is None:
                return done
        if fault is Fault.LATE:
            self.late.append(build)
        raise NoAnswerError("injected")

    def deliver(self) -> None:
        for build in self.late:
            super().commit(build)
        self.late.clear()

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Shortens the answer timeout to one second; the session stays alive."""
        before, self._timeout = self._timeout, 1.0
        try:
            yield
        finally:
            self._timeout = before

    @property
    def client(self) -> Any:
        return self._connected()


class Place:
    """ZooKeeper node and location of a single test, and the sessions opened on them."""

    def __init__(self, server: ZooKeeperServer, directory: Path) -> None:
        self.server = server
        self.storage: Storage = LocalStorage(directory)
        self.node = f"/test-{uuid.uuid4().hex}/query"
        self.clock = NoClock()
        self.sessions: list[FaultySession] = []

    def open(self, name: str = "a", timeout: float = SESSION_SECONDS) -> ZooKeeperCompletedCheckpointStore:
        self.sessions.append(FaultySession(self.server.quorum, timeout))
        mirror = Mirror(self.storage)
        return ZooKeeperCompletedCheckpointStore(self.sessions[-1], self.node, mirror, owner(name), self.clock)

    def claimed(self, name: str = "a", timeout: float = SESSION_SECONDS) -> ZooKeeperCompletedCheckpointStore:
        store = self.open(name, timeout)
        store.recover()
        store.claim()
        return store

    def stored(self) -> list[CheckpointRecord]:
        store = self.open("reader")
        store.recover()
        return store.all()

    def mirrored(self) -> list[CheckpointRecord]:
        """Checkpoints visible to a reader that has only the file system."""
        log = FilesystemCompletedCheckpointStore(self.storage, owner("reader"))
        log.recover()
        return log.all()

    def nodes(self, below: str = "") -> list[str]:
        with self.server.client() as client:
            names: list[str] = client.get_children(self.node + below)
            return sorted(names)

    def close(self) -> None:
        for session in self.sessions:
            session.close()
