"""A counter of ids in a node of ZooKeeper."""

from __future__ import annotations

from typing import Any

from spark_ckpt.completed.store import CheckpointIDCounter, JobStatus
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from spark_ckpt.errors import StorageError


class ZooKeeperCheckpointIDCounter(CheckpointIDCounter):
    """The next id as text, in a node whose version shows that another driver has taken one (Flink:
    `ZooKeeperCheckpointIDCounter`).

    Args:
        session: with the servers.
        path: of the node.
    """

    def __init__(self, session: ZooKeeperSession, path: str) -> None:
        self._session = session
        self.path = path
        self._next = 1
        self._version = -1

    def get(self) -> int:
        """The id that the next claim or checkpoint will have, as last read."""
        return self._next

    def set_count(self, next_id: int) -> None:
        """Goes on from `next_id`.

        Raises:
            ValueError: it lies before an id that was taken already.
            StorageError: it cannot be written, or another driver has just taken an id.
        """
        self.read()
        if next_id < self._next:
            raise ValueError(f"id {next_id} lies before {self._next}, the next free one")
        if not self._write(next_id):
            raise StorageError(f"{self._session.address}{self.path}", "write", "somebody else has just changed it")

    def shutdown(self, status: JobStatus) -> None:
        """Nothing to do: the node stays, so that no id is used again."""

    def read(self) -> bool:
        """Reads the node.

        Returns:
            True if there is one.

        Raises:
            StorageError: it holds no number, or no answer came.
        """
        found = self._session.get(self.path)
        if found is None:
            return False
        text, self._version = found
        if not text.isdigit():
            raise StorageError(f"{self._session.address}{self.path}", "read", f"it holds {text[:40]!r}, and no number")
        self._next = int(text)
        return True

    def took(self, taken: int) -> None:
        """A transaction of ours has taken this id."""
        self._next = taken + 1
        self._version += 1

    def start_from(self, next_id: int) -> None:
        """The id that the node will begin with; it is not there yet."""
        self._next = next_id

    def create(self, transaction: Any) -> None:  # noqa: ANN401  (kazoo has no types)
        """Adds to a transaction that the node is made."""
        transaction.create(self.path, b"%d" % self._next)

    def take(self, transaction: Any) -> None:  # noqa: ANN401
        """Adds to a transaction that the next id is taken, which fails if another driver has taken one meanwhile."""
        transaction.set_data(self.path, b"%d" % (self._next + 1), self._version)

    def _write(self, next_id: int) -> bool:
        try:
            if self._version < 0:
                self._session.ensure(self.path.rpartition("/")[0])
                done = self._session.commit(lambda transaction: transaction.create(self.path, b"%d" % next_id))
            else:
                done = self._session.commit(
                    lambda transaction: transaction.set_data(self.path, b"%d" % next_id, self._version)
                )
        except NoAnswerError as e:
            raise StorageError(f"{self._session.address}{self.path}", "write", e) from e
        if done is not None:
            self.read()
        return done is not None
