"""Contract of completed-checkpoint stores and of their id counters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import ClassVar

from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord


class JobStatus(Enum):
    """Outcome of a query run. Spark may restart the query after any of them, so none discards state by itself."""

    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"

    @property
    def is_terminal(self) -> bool:
        """True if the query is over for good in Flink's terms (`JobStatus.isGloballyTerminalState`)."""
        return self is not JobStatus.SUSPENDED


class CheckpointIDCounter(ABC):
    """Counter that holds the next free id of a store (Flink: `CheckpointIDCounter`)."""

    @abstractmethod
    def get(self) -> int:
        """Id of the next claim or checkpoint."""

    @abstractmethod
    def set_count(self, next_id: int) -> None:
        """Sets the next id.

        Raises:
            ValueError: `next_id` lies before an id that is already taken.
        """

    @abstractmethod
    def shutdown(self, status: JobStatus) -> None:
        """Closes the counter."""


class CompletedCheckpointStore(ABC):
    """Completed checkpoints of one location, and the right to add to them (Flink: `CompletedCheckpointStore`).

    Not thread-safe. Lifecycle: `recover`, which changes nothing; `claim`, which makes this driver the owner; `add` for
    each checkpoint; `shutdown`. Every store guarantees:

    - claims and checkpoints share one ascending sequence of ids, and each id goes to at most one owner;
    - once another driver has claimed, `add` fails permanently with `FencedError`;
    - every `recover` after a successful `add` finds that checkpoint;
    - a record whose `add` raised `UnknownOutcomeError` is settled, as present or absent, before the next one is added;
    - the newest checkpoint is the one with the highest id, not the last by name or time.

    The second guarantee requires `fences`.
    """

    fences: ClassVar[bool] = True
    """True if a claim fences earlier drivers. A store without fencing must not delete files it did not write."""

    @abstractmethod
    def recover(self) -> None:
        """Reads the existing records. Must be the first call; repeat it to refresh.

        Raises:
            DamagedRecordError: a record is damaged.
            StorageError: the log cannot be read.
        """

    @abstractmethod
    def leave_out_damaged(self) -> list[str]:
        """Treats damaged records as absent, after `recover` has failed because of them.

        Their ids stay taken, so the driver that wrote one of them still finds the next claim at its own next id.

        Returns:
            Files of these records, relative to the location; empty if the store cannot do without them.

        Raises:
            StorageError: the log cannot be read.
        """

    def prepare_claim(self) -> None:  # noqa: B027  (most stores need no preparation)
        """Begins the part of a claim that concerns no other driver. `claim` raises its errors."""

    @abstractmethod
    def claim(self) -> ClaimRecord:
        """Makes this driver the owner: no earlier owner can complete a checkpoint from now on.

        Returns:
            The claim, with this driver's new generation.

        Raises:
            UnknownOutcomeError: the storage does not say whether the claim was written; claim again.
            StorageError: the claim cannot be written.
        """

    @abstractmethod
    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Completes a checkpoint. It does not exist before this call, and is durable when the call returns.

        Args:
            make_record: builds the record from its id (the one of `counter`) and the UUID of the attempt.

        Returns:
            The record.

        Raises:
            FencedError: another driver has claimed. Every later call raises it as well.
            UnknownOutcomeError: the record may exist, or may still appear. The files it refers to must not be deleted.
                The next `settle` finds out.
            StorageError: the record certainly does not exist.
        """

    @abstractmethod
    def settle(self) -> CheckpointRecord | None:
        """Settles a record whose `add` had an unknown outcome.

        Returns:
            The record, now complete; None if there was nothing to settle.

        Raises:
            FencedError, UnknownOutcomeError, StorageError: as in `add`.
        """

    @abstractmethod
    def subsume(self, *checkpoints: CheckpointRecord) -> None:
        """Drops checkpoints, in as few requests as possible: deletes their records, which must not outlive the files.

        Raises:
            StorageError: some of the records may still exist. Call it again with the same ones.
        """

    @property
    def shows_drops(self) -> bool:
        """True if everyone sees that the dropped checkpoints are gone, also those who only have the file system."""
        return True

    def may_subsume(self, checkpoint: CheckpointRecord) -> bool:
        """True if the store permits dropping a checkpoint now."""
        return True

    def forget_if_gone(self, checkpoint: CheckpointRecord) -> None:  # noqa: B027  (only listings show what is gone)
        """Forgets a checkpoint whose record is gone, which a listing may still show.

        Raises:
            StorageError: the record cannot be read.
        """

    def keep_counting(self) -> None:  # noqa: B027  (a store with a separate counter has nothing to do)
        """Ensures that no id is taken twice after all checkpoints are dropped. Call it before dropping them.

        Raises:
            FencedError: another driver has claimed.
            UnknownOutcomeError, StorageError: no such guarantee; the checkpoints must stay.
        """

    @abstractmethod
    def all(self) -> list[CheckpointRecord]:
        """All checkpoints, ascending by id."""

    @abstractmethod
    def claims(self) -> list[ClaimRecord]:
        """Retained claims, ascending by id; at least the newest one where claims outlast their driver."""

    @abstractmethod
    def check_owner(self) -> None:
        """Checks that no other driver has claimed so far. Call it before deleting files.

        Raises:
            FencedError: another driver has. Every later `add` raises it as well.
            StorageError: the log cannot be read.
        """

    @property
    @abstractmethod
    def counter(self) -> CheckpointIDCounter:
        """Counter of ids."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """Generation of this driver's claim; 0 before the claim."""

    @abstractmethod
    def shutdown(self, status: JobStatus) -> None:
        """Closes the store. The checkpoints stay: Spark restarts finished queries as well.

        Args:
            status: outcome of the query run.
        """

    def latest(self) -> CheckpointRecord | None:
        """Newest checkpoint, or None."""
        checkpoints = self.all()
        return checkpoints[-1] if checkpoints else None

    def latest_of_version(self, version: int) -> CheckpointRecord | None:
        """Newest checkpoint of a state version, or None."""
        return next((c for c in reversed(self.all()) if c.version == version), None)
