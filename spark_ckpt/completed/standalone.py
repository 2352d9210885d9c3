"""In-memory completed-checkpoint store, for a location used by one driver at a time."""

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
        records: records of the intact checkpoints, built from their `_metadata`, ascending by id.
        damaged: errors of the damaged checkpoints.
        next_id: id above the number of every directory.
        log: store whose log recorded the newest checkpoint, if the checkpoint names one. When only a scan is left, that
            log is gone.
    """

    records: tuple[CheckpointRecord, ...] = ()
    damaged: tuple[DamagedCheckpointError, ...] = ()
    next_id: int = 1
    log: str | None = None


class _IDCounter(LogIDCounter):
    """Counter that reports each id it hands out: without a log, the id of a failed attempt is free again."""

    def __init__(self, tried: Callable[[int], None]) -> None:
        super().__init__()
        self._tried = tried

    def get(self) -> int:
        self._tried(self._next)
        return super().get()


class StandaloneCompletedCheckpointStore(RecordStore):
    """Store that keeps its records in memory and recovers them by reading every `_metadata`.

    Flink's `StandaloneCompletedCheckpointStore` does not recover. There is no fence: two drivers on one location
    silently overwrite each other's checkpoints. A claim lasts as long as its driver. Among the runs of one driver the
    newest claim counts.

    Args:
        storage: storage of the checkpoint location.
        scan: reads the existing checkpoints.
        owner: this driver.
        clock: clock for timestamps and pauses.
        claims: claims of all runs of this driver; by default this run is the only one.
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
        """Damaged checkpoints that the last `recover` left out."""

    def recover(self) -> None:
        """Reads each checkpoint in full. Leaves out damaged ones, with a warning.

        Raises:
            StoreMismatchError: the location has the log of another store.
            StorageError: the storage does not answer.
        """
        self._read_at = self._process_claims.deletions
        log = RecordFiles(self._storage)
        if ids := log.ids():
            raise StoreMismatchError(self._storage.describe(log.directory), len(ids))
        found = self._scan()
        for damaged in found.damaged:
            _log.warning("ignored: %s", damaged)
        self.damaged = found.damaged
        self._records = {record.id: record for record in found.records}
        self._ids.advance_to(max(found.next_id, self._process_claims.free_id(self._storage.location)))

    def claim(self) -> ClaimRecord:
        """Claims the location within this driver only; other drivers do not see the claim."""
        _log.warning(
            "%s: the store 'standalone' does not fence: nothing stops a second driver on this location",
            self._storage.location,
        )
        location = self._storage.location
        run = ProcessClaim(self._owner.run_id, 1 + max((r.generation for r in self._records.values()), default=0))
        self._process_claims.claim(location, run, self._clock)
        if self._process_claims.deletions != self._read_at:
            # The previous run may have deleted checkpoints since `recover`; from here on it deletes none.
            self.recover()
        self._ids.advance_to(self._process_claims.free_id(location))
        claim = self._next_claim(str(uuid.uuid4()))
        self._claimed(claim)
        return claim

    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Keeps the record in memory. The checkpoint exists since its `_metadata` was written."""
        self.check_owner()
        record = make_record(self._counter.get(), str(uuid.uuid4()))
        self._took(record)
        return record

    def settle(self) -> None:
        """Only checks that the store is open: there is nothing to settle."""
        self._check_open()

    def check_owner(self) -> None:
        """Checks for a newer claim within this driver; there is no fence against other drivers."""
        self._check_open()
        if newer := self._process_claims.newer_than(self._storage.location, self._owner.run_id):
            raise self._superseded(newer)

    def shutdown(self, status: JobStatus) -> None:
        """Closes the store and releases its claim."""
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
