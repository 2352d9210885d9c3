"""The common base of all stores: records in memory, the counter, and being open, fenced or shut down."""

from __future__ import annotations

import socket
from abc import abstractmethod
from collections.abc import Collection

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.completed.processes import identity_of
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record
from spark_ckpt.completed.store import CheckpointIDCounter, CompletedCheckpointStore, JobStatus

CLAIMS_KEPT = 16
"""Number of claims kept, the newest. They show a person the users of a location; no fence depends on the number."""


class LogIDCounter(CheckpointIDCounter):
    """The id after the last one in the log. Taking an id reserves nothing: completing a checkpoint does."""

    def __init__(self) -> None:
        self._next = 1

    def get(self) -> int:
        """The id that the next claim or checkpoint will have."""
        return self._next

    def set_count(self, next_id: int) -> None:
        """Continues from `next_id`."""
        if next_id < self._next:
            raise ValueError(f"id {next_id} lies before {self._next}, the next free one")
        self._next = next_id

    def advance_to(self, next_id: int) -> None:
        """Continues from `next_id` unless it lies before the next free id."""
        self._next = max(self._next, next_id)

    def shutdown(self, status: JobStatus) -> None:
        """Nothing to do: the log is the counter."""


class RecordStore(CompletedCheckpointStore):
    """A store that keeps in memory what it has read and written.

    Args:
        owner: this driver.
        clock: for timestamps and pauses.
    """

    def __init__(self, owner: Owner, clock: Clock | None = None) -> None:
        self._owner = owner
        self._clock = clock or SystemClock()
        self._counter: CheckpointIDCounter = LogIDCounter()
        self._records: dict[int, Record] = {}
        self._generation = 0
        self._claim_id = 0
        self._fence: FencedError | None = None

    def all(self) -> list[CheckpointRecord]:
        """The checkpoints, ascending by id."""
        return [record for _, record in sorted(self._records.items()) if isinstance(record, CheckpointRecord)]

    def claims(self) -> list[ClaimRecord]:
        """The claims that are kept, ascending by id."""
        return [record for _, record in sorted(self._records.items()) if isinstance(record, ClaimRecord)]

    @property
    def counter(self) -> CheckpointIDCounter:
        """The counter of ids."""
        return self._counter

    @property
    def generation(self) -> int:
        """The generation of this driver's claim; 0 before it has claimed."""
        return self._generation

    def subsume(self, checkpoint: CheckpointRecord) -> None:
        """Deletes the record."""
        self._drop(checkpoint)
        self._records.pop(checkpoint.id, None)

    def leave_out_damaged(self) -> list[str]:
        """Nothing, where a record is not a file of the location."""
        return []

    def shutdown(self, status: JobStatus) -> None:
        """Is closed."""
        self._counter.shutdown(status)
        self._generation = 0

    @abstractmethod
    def _drop(self, record: Record) -> None:
        """Deletes a record from where the truth is; one that is not there is no error."""

    def _next_claim(self, attempt: str, surplus: Collection[ClaimRecord] = ()) -> ClaimRecord:
        """A claim with the next id and a higher generation than any.

        Args:
            attempt: UUID of the try to write it.
            surplus: the claims that are dropped after it. It must not have seen them: their ids are free again then.
        """
        generation = 1 + max((record.generation for record in self._records.values()), default=0)
        seen = tuple(sorted(self._records.keys() - {claim.id for claim in surplus}))
        process = identity_of(self._owner.pid) if self._owner.host == socket.gethostname() else None
        return ClaimRecord(self._counter.get(), generation, self._owner, attempt, self._clock.now_ms(), seen, process)

    def _claimed(self, claim: ClaimRecord) -> None:
        """The claim is there."""
        self._took(claim)
        self._claim_id = claim.id
        self._generation = claim.generation
        self._fence = None

    def _surplus_claims(self, kept: int = CLAIMS_KEPT) -> list[ClaimRecord]:
        """All claims but the newest, ascending by id. Their age is not looked at: clocks may be wrong."""
        claims = self.claims()
        return claims[: max(0, len(claims) - kept)]

    def _took(self, record: Record) -> None:
        self._records[record.id] = record
        self._counter.set_count(record.id + 1)

    def _count_from_records(self) -> None:
        """The next id is after the last record there is."""
        self._counter.set_count(max([self._counter.get(), *(i + 1 for i in self._records)]))

    def _check_open(self) -> None:
        if self._fence is not None:
            raise self._fence
        if self._generation == 0:
            raise RuntimeError("the store has not been claimed, or is shut down")
