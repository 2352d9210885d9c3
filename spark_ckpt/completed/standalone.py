"""A completed-checkpoint store in memory, for a location that one driver at a time uses."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spark_ckpt.clock import Clock
from spark_ckpt.completed.base import LogIDCounter, RecordStore
from spark_ckpt.completed.errors import FencedError, StoreMismatchError, SupersededRunError
from spark_ckpt.completed.process_claims import ProcessClaim, ProcessClaims
from spark_ckpt.completed.record_files import RecordFiles
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record
from spark_ckpt.completed.store import JobStatus
from spark_ckpt.errors import DamagedCheckpointError
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scan:
    """Content of the directories `chk-<id>` of a location.

    Args:
        records: of the checkpoints that are whole, made from their `_metadata`, ascending by id.
        damaged: the damage of the others.
        next_id: above the number of every directory.
        log: the store whose log had the newest of them, if they say so. Where a scan is all there is, that log is gone.
    """

    records: tuple[CheckpointRecord, ...] = ()
    damaged: tuple[DamagedCheckpointError, ...] = ()
    next_id: int = 1
    log: str | None = None


class _IDCounter(LogIDCounter):
    """Without a log, the id of a try that failed is free again: tells which ids were tried."""

    def __init__(self, tried: Callable[[int], None]) -> None:
        super().__init__()
        self._tried = tried

    def get(self) -> int:
        self._tried(self._next)
        return super().get()


class StandaloneCompletedCheckpointStore(RecordStore):
    """Truth is in memory, and found again by reading every `_metadata` (Flink:
    `StandaloneCompletedCheckpointStore`, which forgets).

    There is no fence: two drivers on one location overwrite each other's checkpoints, and neither is told. A claim
    lasts as long as its driver. Among the runs of one driver the newest claim counts.

    Args:
        storage: of the checkpoint location.
        scan: reads the checkpoints that are there.
        owner: this driver.
        clock: for timestamps and pauses.
        claims: of the runs of this driver; by default this one is alone.
    """

    fences = False

    def __init__(
        self,
        storage: Storage,
        scan: Callable[[], Scan],
        owner: Owner,
        clock: Clock | None = None,
        claims: ProcessClaims | None = None,
    ) -> None:
        super().__init__(owner, clock)
        self._storage = storage
        self._scan = scan
        self._process_claims = claims or ProcessClaims()
        self._read_at = 0
        self._ids = _IDCounter(partial(self._process_claims.tried, storage.location))
        self._counter = self._ids
        self.damaged: tuple[DamagedCheckpointError, ...] = ()
        """Checkpoints that the last `recover` found damaged and left out."""

    def recover(self) -> None:
        """Reads each checkpoint in full. One that is not whole is left out, with a warning.

        Raises:
            StoreMismatchError: another store has a log here.
            StorageError: the storage does not answer.
        """
        self._read_at = self._process_claims.deletions
        log = RecordFiles(self._storage)
        if ids := log.ids():
            raise StoreMismatchError(self._storage.describe(log.directory), len(ids))
        found = self._scan()
        for damaged in found.damaged:
            _log.warning("left aside: %s", damaged)
        self.damaged = found.damaged
        self._records = {record.id: record for record in found.records}
        self._ids.advance_to(max(found.next_id, self._process_claims.free_id(self._storage.location)))

    def claim(self) -> ClaimRecord:
        """Claims nothing that another driver would see."""
        _log.warning(
            "%s: the store 'standalone' has no fence: nothing keeps a second driver from this location",
            self._storage.location,
        )
        location = self._storage.location
        run = ProcessClaim(self._owner.run_id, 1 + max((r.generation for r in self._records.values()), default=0))
        self._process_claims.claim(location, run, self._clock)
        if self._process_claims.deletions != self._read_at:
            # The run before may have deleted checkpoints since `recover`; from here on it deletes none.
            self.recover()
        self._ids.advance_to(self._process_claims.free_id(location))
        claim = self._next_claim(str(uuid.uuid4()))
        self._claimed(claim)
        return claim

    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Takes the record. The checkpoint has been there since its `_metadata` was written."""
        self.check_owner()
        record = make_record(self._counter.get(), str(uuid.uuid4()))
        self._took(record)
        return record

    def settle(self) -> None:
        """There is nothing to settle."""
        self._check_open()

    def check_owner(self) -> None:
        """Looks for a newer claim in this driver; this store has no fence against others."""
        self._check_open()
        if newer := self._process_claims.newer_than(self._storage.location, self._owner.run_id):
            raise self._superseded(newer)

    def shutdown(self, status: JobStatus) -> None:
        """Is closed; its claim no longer counts."""
        self._process_claims.release(self._storage.location, self._owner.run_id)
        super().shutdown(status)

    def _drop(self, record: Record) -> None:
        if not isinstance(record, CheckpointRecord):
            return
        location = self._storage.location
        if newer := self._process_claims.begin_deleting(location, self._owner.run_id):
            raise self._superseded(newer)
        try:
            self._storage.delete(f"ckpt/{record.metadata.path}")
        finally:
            self._process_claims.end_deleting(location)

    def _superseded(self, newer: ProcessClaim) -> FencedError:
        location = self._storage.location
        self._fence = SupersededRunError(location, self._generation, newer.generation, newer.run_id)
        return self._fence
