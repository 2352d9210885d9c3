"""Id counter in a ZooKeeper node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_ckpt.completed.store import CheckpointIDCounter, JobStatus
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from spark_ckpt.errors import StorageError


class ZooKeeperCheckpointIDCounter(CheckpointIDCounter):
    """Next id as text in a ZooKeeper node (Flink: `ZooKeeperCheckpointIDCounter`).

    The version of the node reveals that another driver has taken an id.

    Args:
        session: session with the servers.
        path: path of the node.
    """

    def __init__(self, session: ZooKeeperSession, path: str) -> None:
        self._session = session
        self.path = path
        self._next = 1
        self._version = -1

    def get(self) -> int:
        """Id of the next claim or checkpoint, as last read."""
        return self._next

    def set_count(self, next_id: int) -> None:
        """Sets the next id.

        Raises:
            ValueError: `next_id` lies before an id that is already taken.
            StorageError: the node cannot be written, or another driver has just taken an id.
        """
        self.read()
        if next_id < self._next:
            raise ValueError(f"id {next_id} is below the next free id, {self._next}")
        if not self._write(next_id):
            raise StorageError(f"{self._session.address}{self.path}", "write", "another client has just changed it")

    def shutdown(self, status: JobStatus) -> None:
        """Does nothing: the node stays, so that no id is reused."""

    def read(self) -> bool:
        """Reads the node.

        Returns:
            True if the node exists.

        Raises:
            StorageError: the node holds no number, or no answer came.
        """
        found = self._session.get(self.path)
        if found is None:
            return False
        text, self._version = found
        if not text.isdigit():
            raise StorageError(
                f"{self._session.address}{self.path}", "read", f"it holds {text[:40]!r} instead of a number"
            )
        self._next = int(text)
        return True

    def move_past(self, used_id: int) -> None:
        """Moves past an id that a transaction of this driver has taken."""
        self._next = used_id + 1
        self._version += 1

    def start_from(self, next_id: int) -> None:
        """Sets the initial id of a node that does not exist yet."""
        self._next = next_id

    def create(self, transaction: Any) -> None:  # noqa: ANN401  (kazoo has no types)
        """Adds the creation of the node to a transaction."""
        transaction.create(self.path, b"%d" % self._next)

    def take(self, transaction: Any) -> None:  # noqa: ANN401
        """Adds the taking of the next id to a transaction, which then fails if another driver took one meanwhile."""
        transaction.set_data(self.path, b"%d" % (self._next + 1), self._version)

    def _write(self, next_id: int) -> bool:
        try:
            if self._version < 0:
                done = self._create(next_id)
            else:
                done = self._session.commit(
                    lambda transaction: transaction.set_data(self.path, b"%d" % next_id, self._version)
                )
        except NoAnswerError as e:
            raise StorageError(f"{self._session.address}{self.path}", "write", e) from e
        if done is not None:
            self.read()
        return done is not None

    def _create(self, next_id: int) -> Sequence[Any] | None:
        """Creates the node, and its parent unless a store has."""
        own = self.path.rpartition("/")[0]
        if self._session.exists(own):
            return self._session.commit(lambda transaction: transaction.create(self.path, b"%d" % next_id))
        self._session.ensure_shared(own.rpartition("/")[0] or "/")

        def build(transaction: Any) -> None:  # noqa: ANN401
            transaction.create(own)
            transaction.create(self.path, b"%d" % next_id)

        return self._session.commit(build)
