"""Common base of all stores: records in memory, the id counter, and the open, fenced or shut-down state."""

from __future__ import annotations

import socket
from abc import abstractmethod
from collections.abc import Collection

from spark_ckpt import __version__
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed.errors import FencedError
from spark_ckpt.completed.processes import identity_of
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record
from spark_ckpt.completed.store import CheckpointIDCounter, CompletedCheckpointStore, JobStatus

MAX_CLAIMS = 16
"""Number of newest claims retained. They show people who used a location; no fence depends on the number."""


class LogIDCounter(CheckpointIDCounter):
    """Counter whose next id follows the last one in the log. `get` reserves nothing; completing a checkpoint does."""

    def __init__(self) -> None:
        self._next = 1

    def get(self) -> int:
        """Id of the next claim or checkpoint."""
        return self._next

    def set_count(self, next_id: int) -> None:
        """Sets the next id."""
        if next_id < self._next:
            raise ValueError(f"id {next_id} is below the next free id, {self._next}")
        self._next = next_id

    def advance_to(self, next_id: int) -> None:
        """Raises the next id to `next_id`; a lower `next_id` changes nothing."""
        self._next = max(self._next, next_id)

    def shutdown(self, status: JobStatus) -> None:
        """Does nothing: the log is the counter."""


class RecordStore(CompletedCheckpointStore):
    """Store that keeps its records in memory, as last read or written.

    Args:
        owner: this driver.
        clock: clock for timestamps and pauses.
    """

    def __init__(self, owner: Owner, clock: Clock | None = None) -> None:
        self.log_epoch: int | None = None
        self.hung: int | None = None
        """Log epoch of the driver, for its claims."""
        self._owner = owner
        self._clock = clock or SystemClock()
        self._counter: CheckpointIDCounter = LogIDCounter()
        self._records: dict[int, Record] = {}
        self._generation = 0
        self._claim_id = 0
        self._fence: FencedError | None = None

    def all(self) -> list[CheckpointRecord]:
        """All checkpoints, ascending by id."""
        return [record for _, record in sorted(self._records.items()) if isinstance(record, CheckpointRecord)]

    def claims(self) -> list[ClaimRecord]:
        """Retained claims, ascending by id."""
        return [record for _, record in sorted(self._records.items()) if isinstance(record, ClaimRecord)]

    @property
    def counter(self) -> CheckpointIDCounter:
        """Counter of ids."""
        return self._counter

    @property
    def generation(self) -> int:
        """Generation of this driver's claim; 0 before the claim."""
        return self._generation

    def subsume(self, *checkpoints: CheckpointRecord) -> None:
        """Deletes the records one by one. A mirror follows each deletion."""
        for checkpoint in checkpoints:
            self._drop(checkpoint)
            self._records.pop(checkpoint.id, None)

    def leave_out_damaged(self) -> list[str]:
        """Leaves nothing out, since records are not files of the location by default."""
        return []

    def shutdown(self, status: JobStatus) -> None:
        """Closes the store."""
        self._counter.shutdown(status)
        self._generation = 0

    @abstractmethod
    def _drop(self, record: Record) -> None:
        """Deletes a record from the authoritative store; an absent record is no error."""

    def _next_claim(self, attempt: str, surplus: Collection[ClaimRecord] = ()) -> ClaimRecord:
        """Claim with the next id and a generation above all known ones.

        Args:
            attempt: UUID of the attempt to write it.
            surplus: claims to drop afterwards. `seen` must omit them, because their ids become free again.
        """
        generation = 1 + max((record.generation for record in self._records.values()), default=0)
        seen = tuple(sorted(self._records.keys() - {claim.id for claim in surplus}))
        process = identity_of(self._owner.pid) if self._owner.host == socket.gethostname() else None
        return ClaimRecord(
            self._counter.get(),
            generation,
            self._owner,
            attempt,
            self._clock.now_ms(),
            seen,
            process,
            self.log_epoch,
            __version__,
            self.hung,
        )

    def _claimed(self, claim: ClaimRecord) -> None:
        """Makes a written claim this driver's own."""
        self._took(claim)
        self._claim_id = claim.id
        self._generation = claim.generation
        self._fence = None

    def _surplus_claims(self, retained: int = MAX_CLAIMS) -> list[ClaimRecord]:
        """All claims except the newest `retained`, ascending by id. Their age does not matter: clocks may be wrong."""
        claims = self.claims()
        return claims[: max(0, len(claims) - retained)]

    def _took(self, record: Record) -> None:
        self._records[record.id] = record
        self._counter.set_count(record.id + 1)

    def _count_from_records(self) -> None:
        """Moves the next id past the last record."""
        self._counter.set_count(max([self._counter.get(), *(i + 1 for i in self._records)]))

    def _check_open(self) -> None:
        if self._fence is not None:
            raise self._fence
        if self._generation == 0:
            raise RuntimeError("the store has not been claimed, or is shut down")
