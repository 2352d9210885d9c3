"""What all stores have in common: the records in memory, the counter, and being open, shut out or shut down."""

from __future__ import annotations

from abc import abstractmethod

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record
from spark_ckpt.completed.store import CheckpointIDCounter, CompletedCheckpointStore, JobStatus
from spark_ckpt.errors import FencedError

CLAIM_GRACE_MS = 7 * 24 * 3600 * 1000
"""How long a claim is kept at least, so that the driver it shut out still finds its next id taken."""


class LogIDCounter(CheckpointIDCounter):
    """The id after the last one in the log. Taking an id reserves nothing: completing a checkpoint does."""

    def __init__(self) -> None:
        self._next = 1

    def get(self) -> int:
        """The id that the next claim or checkpoint will have."""
        return self._next

    def get_and_increment(self) -> int:
        """Takes an id."""
        self._next += 1
        return self._next - 1

    def set_count(self, next_id: int) -> None:
        """Goes on from `next_id`."""
        if next_id < self._next:
            raise ValueError(f"id {next_id} lies before {self._next}, the next free one")
        self._next = next_id

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

    def shutdown(self, status: JobStatus, discard: bool = False) -> list[CheckpointRecord]:
        """Drops all checkpoints if they are to be discarded, and is closed."""
        dropped: list[CheckpointRecord] = []
        if discard and status.is_terminal and self._generation:
            self.check_owner()
            for checkpoint in self.all():
                self.subsume(checkpoint)
                dropped.append(checkpoint)
        self._counter.shutdown(status)
        self._generation = 0
        return dropped

    @abstractmethod
    def _drop(self, record: Record) -> None:
        """Deletes a record from where the truth is; one that is not there is no error."""

    def _next_claim(self, attempt: str) -> ClaimRecord:
        """A claim with the next id and a higher generation than any."""
        generation = 1 + max((record.generation for record in self._records.values()), default=0)
        return ClaimRecord(self._counter.get(), generation, self._owner, attempt, self._clock.now_ms())

    def _claimed(self, claim: ClaimRecord) -> None:
        """The claim is there."""
        self._took(claim)
        self._generation = claim.generation
        self._fence = None

    def _old_claims(self) -> list[ClaimRecord]:
        """The claims past the grace time. Once this driver has claimed, the newest is its own."""
        oldest_ms = self._clock.now_ms() - CLAIM_GRACE_MS
        return [claim for claim in self.claims() if claim.timestamp_ms < oldest_ms]

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
