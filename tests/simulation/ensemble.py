"""ZooKeeper in memory, and each process's faulty connection to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from spark_ckpt.clock import Clock
from spark_ckpt.completed.errors import ZooKeeperUnavailableError
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from tests.simulation.disk import Observer
from tests.simulation.faults import Way

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Node:
    data: bytes
    version: int = 0
    session: object = None
    """The session with which an ephemeral node ends."""


class Refused(Exception):  # noqa: N818
    """An operation cannot be carried out."""


@dataclass
class Transaction:
    """The part of kazoo's transactions in use here."""

    session: object
    operations: list[Callable[[dict[str, Node]], None]] = field(default_factory=list)

    def create(self, path: str, data: bytes = b"", ephemeral: bool = False) -> None:
        def run(nodes: dict[str, Node]) -> None:
            _require(path not in nodes and path.rpartition("/")[0] in nodes)
            nodes[path] = Node(data, session=self.session if ephemeral else None)

        self.operations.append(run)

    def set_data(self, path: str, data: bytes, version: int) -> None:
        def run(nodes: dict[str, Node]) -> None:
            _require(path in nodes and nodes[path].version == version)
            nodes[path] = replace(nodes[path], data=data, version=version + 1)

        self.operations.append(run)

    def check(self, path: str, version: int) -> None:
        self.operations.append(lambda nodes: _require(path in nodes and nodes[path].version == version))

    def delete(self, path: str) -> None:
        def run(nodes: dict[str, Node]) -> None:
            _require(path in nodes and not any(name.startswith(f"{path}/") for name in nodes))
            del nodes[path]

        self.operations.append(run)


def _require(holds: bool) -> None:
    if not holds:
        raise Refused


class Ensemble:
    """The nodes. Operations here always succeed: faults belong to the way to the ensemble."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"": Node(b"")}
        self.observer: Observer | None = None

    def carry_out(self, transaction: Transaction) -> bool:
        """Carries out all of a transaction, or none of it."""
        after = dict(self.nodes)
        try:
            for operation in transaction.operations:
                operation(after)
        except Refused:
            return False
        before, self.nodes = self.nodes, after
        if self.observer is not None:
            for path in [path for path in after if path not in before]:
                self.observer.created(path, after[path].data)
            for path in [path for path in before if path not in after]:
                self.observer.deleted(path)
        return True

    def expire(self, session: object) -> None:
        """Ends a session."""
        self.nodes = {path: node for path, node in self.nodes.items() if node.session is not session}


class SimulatedSession(ZooKeeperSession):
    """One process's connection to the ensemble. Its requests are carried out in order, however late.

    Args:
        ensemble: the nodes.
        way: the process, and the faults of its requests.
        quorum: as in the real session.
        timeout: as in the real session.
        clock: as in the real session.
    """

    def __init__(self, ensemble: Ensemble, way: Way, quorum: str, timeout: float, clock: Clock) -> None:
        super().__init__(quorum, timeout, clock)
        self._ensemble, self._way = ensemble, way
        self._late: list[Transaction] = []
        self._session = object()

    def expire(self) -> None:
        """Expires the session on the servers; they refuse requests still on their way."""
        self._ensemble.expire(self._session)
        self._session, self._late = object(), []

    def get(self, path: str) -> tuple[bytes, int] | None:
        node = self._asked(path, lambda: self._ensemble.nodes.get(path))
        return (node.data, node.version) if node is not None else None

    def children(self, path: str) -> list[str]:
        def below() -> list[str]:
            return [name.rpartition("/")[2] for name in self._ensemble.nodes if name.rpartition("/")[0] == path]

        return self._asked(path, below)

    def exists(self, path: str) -> bool:
        return self._asked(path, lambda: path in self._ensemble.nodes)

    def ensure_shared(self, path: str) -> None:
        self._asked(path, lambda: self._ensemble.nodes.setdefault(path, Node(b"")))

    def commit(self, build: Callable[[Any], None]) -> Sequence[Any] | None:
        transaction = Transaction(self._session)
        build(transaction)
        done: list[bool] = []

        def send() -> None:
            if transaction.session is not self._session:
                raise NoAnswerError("the session has expired")
            self._deliver()
            done.append(self._ensemble.carry_out(transaction))

        fault = self._way.carry_out("transaction", send)
        if fault == "late":
            self._late.append(transaction)
            self._way.later(self._deliver)
        if fault is not None:
            raise NoAnswerError(fault)
        return done if done == [True] else None

    def close(self) -> None:
        self._deliver()
        self.expire()

    def _asked(self, path: str, body: Callable[[], T]) -> T:
        if self._way.is_cut("look at zookeeper"):
            raise ZooKeeperUnavailableError(self.address, path, "injected")
        self._deliver()
        return body()

    def _deliver(self) -> None:
        while self._late:
            transaction = self._late.pop(0)
            if transaction.session is self._session:
                self._ensemble.carry_out(transaction)
