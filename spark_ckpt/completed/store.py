"""The contract of completed-checkpoint stores, and of the counters of their ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import ClassVar

from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord


class JobStatus(Enum):
    """The end of a run of a query. Spark restarts queries of each kind, so none of them discards state by itself."""

    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUSPENDED = "suspended"

    @property
    def is_terminal(self) -> bool:
        """True if the query is over for good in Flink's terms (`JobStatus.isGloballyTerminalState`)."""
        return self is not JobStatus.SUSPENDED


class CheckpointIDCounter(ABC):
    """The next free id of a store (Flink: `CheckpointIDCounter`)."""

    @abstractmethod
    def get(self) -> int:
        """The id that the next claim or checkpoint will have."""

    @abstractmethod
    def set_count(self, next_id: int) -> None:
        """Goes on from `next_id`.

        Raises:
            ValueError: it lies before an id that was taken already.
        """

    @abstractmethod
    def shutdown(self, status: JobStatus) -> None:
        """Ends the use of the counter."""


class CompletedCheckpointStore(ABC):
    """The completed checkpoints of one location, and the right to add to them (Flink: `CompletedCheckpointStore`).

    A store is used by one thread. Its life: `recover`, which changes nothing; `claim`, which makes this driver the
    owner; `add` for each checkpoint; `shutdown`. Rules that every store keeps:

    - ids of claims and checkpoints are one ascending sequence, and one owner at most gets an id;
    - once another driver has claimed, `add` of this one fails, for good, with `FencedError`;
    - a checkpoint that `add` has returned for is found by every later `recover`;
    - what `add` failed with `UnknownOutcomeError` for is settled, one way or the other, before anything else is added;
    - the newest checkpoint is that with the highest number, not the last by name or time.

    The second rule holds only where `fences` says so.
    """

    fences: ClassVar[bool] = True
    """True if a claim fences earlier drivers. A store without fencing must not delete files it did not write."""

    @abstractmethod
    def recover(self) -> None:
        """Reads what there is. Must come first; may be repeated to read anew.

        Raises:
            DamagedRecordError: a record is damaged.
            StorageError: the log cannot be read.
        """

    @abstractmethod
    def leave_out_damaged(self) -> list[str]:
        """Takes damaged records for ones that are not there, once `recover` has failed because of them.

        Their ids stay taken: a driver that has written one of them finds the next claim where it writes next.

        Returns:
            The files of these records, relative to the location; none if the store cannot do without them.

        Raises:
            StorageError: the log cannot be read.
        """

    @abstractmethod
    def claim(self) -> ClaimRecord:
        """Becomes the owner: from now on no earlier owner can complete a checkpoint.

        Returns:
            The claim, with the generation that this driver has now.

        Raises:
            UnknownOutcomeError: the storage does not say whether the claim is there; claim again.
            StorageError: the claim cannot be written.
        """

    @abstractmethod
    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Completes a checkpoint. It does not exist before, and lasts from the moment this returns.

        Args:
            make_record: makes the record for an id (that of `counter`) and the UUID of the attempt.

        Returns:
            The record.

        Raises:
            FencedError: another driver has claimed. Every later call fails with it as well.
            UnknownOutcomeError: the record may be there or come to be. What it refers to must not be deleted. The next
                `settle` finds out.
            StorageError: the record is certainly not there.
        """

    @abstractmethod
    def settle(self) -> CheckpointRecord | None:
        """Finds out about a record whose `add` had an unknown outcome.

        Returns:
            The record: it is complete now. None if there was nothing to settle.

        Raises:
            FencedError, UnknownOutcomeError, StorageError: as in `add`.
        """

    @abstractmethod
    def subsume(self, checkpoint: CheckpointRecord) -> None:
        """Drops a checkpoint: its record first, so that none is ever found whose files are gone.

        Raises:
            StorageError: it may still be there.
        """

    def may_subsume(self, checkpoint: CheckpointRecord) -> bool:
        """True if the store itself permits a checkpoint to be dropped already."""
        return True

    def keep_counting(self) -> None:  # noqa: B027  (a store whose counter is a thing of its own has nothing to do)
        """Makes sure that no id is taken twice although all checkpoints are about to be dropped: to be asked before.

        Raises:
            FencedError: another driver has claimed.
            UnknownOutcomeError, StorageError: it is not certain; the checkpoints must stay.
        """

    @abstractmethod
    def all(self) -> list[CheckpointRecord]:
        """The checkpoints, ascending by id."""

    @abstractmethod
    def claims(self) -> list[ClaimRecord]:
        """The claims that are kept, ascending by id: the newest at least, where claims outlast their driver."""

    @abstractmethod
    def check_owner(self) -> None:
        """Makes sure that no other driver had claimed a moment ago: to be asked before deleting files.

        Raises:
            FencedError: one had. Every later `add` fails with it as well.
            StorageError: the log cannot be read.
        """

    @property
    @abstractmethod
    def counter(self) -> CheckpointIDCounter:
        """The counter of ids."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The generation of this driver's claim; 0 before it has claimed."""

    @abstractmethod
    def shutdown(self, status: JobStatus) -> None:
        """Ends the use of the store. The checkpoints stay: Spark restarts finished queries as well.

        Args:
            status: how the query ended.
        """

    def latest(self) -> CheckpointRecord | None:
        """The newest checkpoint, or None."""
        checkpoints = self.all()
        return checkpoints[-1] if checkpoints else None

    def latest_of_version(self, version: int) -> CheckpointRecord | None:
        """The newest checkpoint of a version of the state, or None."""
        return next((c for c in reversed(self.all()) if c.version == version), None)
