"""A completed-checkpoint store in a directory: an append-only log of small records, each created exclusively."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import NoReturn

from spark_ckpt.clock import Clock
from spark_ckpt.completed.base import RecordStore
from spark_ckpt.completed.record_files import LOG, RecordFiles
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record, encode_record
from spark_ckpt.errors import FencedError, StorageError, UnknownOutcomeError
from spark_ckpt.storage import CreateOutcome, FsspecStorage, Storage

LATE_REQUEST_MS = 3600 * 1000
"""How long a request whose outcome was unknown may still be on its way."""

_SETTLE_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.1


class FilesystemCompletedCheckpointStore(RecordStore):
    """The log of docs/protocol.md, section 3.

    The fence: an owner's next id is the one after the last it knows. A new driver takes that very id for its claim,
    so the earlier owner, whenever it comes back, loses the exclusive create of its next record, reads the claim, and
    is shut out. Nothing depends on clocks, leases or on the earlier driver being dead.

    Args:
        storage: where the log is.
        owner: this driver.
        directory: name of the log's directory.
        clock: for timestamps and pauses.
    """

    def __init__(self, storage: Storage, owner: Owner, directory: str = LOG, clock: Clock | None = None) -> None:
        super().__init__(owner, clock)
        self._storage = storage
        self._files = RecordFiles(storage, directory)
        self._in_doubt: CheckpointRecord | None = None
        self._late_until: dict[int, int] = {}

    def recover(self) -> None:
        """Reads the log until two readings agree, since records come and go while it is read."""
        self._records = self._files.read_all(self._records)
        self._count_from_records()

    def claim(self) -> ClaimRecord:
        """Takes the next id with a higher generation than any; again with the one after if somebody was faster."""
        if isinstance(self._storage, FsspecStorage):
            self._storage.probe(f"{self._files.directory}/probe-{uuid.uuid4().hex}")
        while True:
            claim = self._next_claim(str(uuid.uuid4()))
            if self._create(claim) is None:
                break
            self.recover()
        self._claimed(claim)
        self._in_doubt = None
        # What the owner before dropped between our reading and our claim is gone; its later tries see our claim. A
        # driver that has claimed since is not counted in: our next id is the one that it took.
        self._records = {i: record for i, record in self._files.read_all(self._records).items() if i <= claim.id}
        self._drop_old_claims()
        self._delete_what_came_late(claim.id)
        return claim

    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Creates the record of the next id."""
        self._check_open()
        if self._in_doubt is not None:
            raise UnknownOutcomeError(self._files.path(self._in_doubt.id), None)
        return self._complete(make_record(self._counter.get(), str(uuid.uuid4())))

    def settle(self) -> CheckpointRecord | None:
        """Creates the record in doubt once more: then it is there, by this try or the earlier one, or it has lost."""
        self._check_open()
        if self._in_doubt is None:
            return None
        return self._complete(self._in_doubt, again=True)

    def may_subsume(self, checkpoint: CheckpointRecord) -> bool:
        """Not while an earlier request to create its record may still arrive: it would bring a dropped record back."""
        return self._late_until.get(checkpoint.id, 0) <= self._clock.now_ms()

    def check_owner(self) -> None:
        """Looks at the next id: a driver that takes over takes that one."""
        self._check_open()
        if self._in_doubt is None and (other := self._files.read(self._counter.get())) is not None:
            self._fence_off(other)

    # ---- the exclusive create ----------------------------------------------------------------------------------------

    def _complete(self, record: CheckpointRecord, again: bool = False) -> CheckpointRecord:
        try:
            other = self._create(record, again)
        except UnknownOutcomeError:
            self._in_doubt = record
            raise
        self._in_doubt = None
        if other is not None:
            self._fence_off(other)
        self._took(record)
        return record

    def _fence_off(self, other: Record) -> NoReturn:
        self._fence = FencedError(self._files.path(other.id), self._generation, other.generation, str(other.owner))
        raise self._fence

    def _create(self, record: Record, again: bool = False) -> Record | None:
        """Creates a record, `again` if an earlier request may have done so.

        Returns:
            None if it is there now, else the record of somebody else that has its id, or has gone on from it.

        Raises:
            UnknownOutcomeError: neither could be found out.
        """
        name, data = self._files.name(record.id), encode_record(record)
        pause = _FIRST_PAUSE_SECONDS
        cause: BaseException | None = None
        is_absent = not again
        for attempt in range(_SETTLE_TRIES):
            if attempt:
                self._clock.sleep(pause)
                pause *= 2
            # Asked for again only when it is known not to be there, and nobody to have gone on from it. The same bytes:
            # should an earlier request still arrive, it finds its own file.
            if is_absent:
                try:
                    result = self._storage.create_exclusive(name, data)
                except StorageError as e:
                    if cause is None and not again:
                        raise
                    cause = e  # this try certainly failed, but an earlier one may have not
                    continue
                if result.outcome is CreateOutcome.WON and not again:
                    return None
                if result.outcome is CreateOutcome.UNKNOWN:
                    self._late_until[record.id] = self._clock.now_ms() + LATE_REQUEST_MS
                cause, again = result.cause or cause, True
            # "Exists" is no proof that somebody else was first: clients repeat requests whose answer got lost.
            try:
                there = self._files.read(record.id)
                if there not in (None, record):
                    return there
                successor = self._successor(record)
            except StorageError as e:
                is_absent, cause = False, e
                continue
            if there is not None or successor is not None:
                return successor
            is_absent = True
        raise UnknownOutcomeError(self._files.path(record.id), cause)

    def _successor(self, record: Record) -> Record | None:
        """Who has gone on from a record, after a request for it whose answer got lost.

        An earlier request may have created the record, the next owner dropped it, and a later request brought it back.
        It stays all the same, for that owner may as well have counted it; whoever claims next drops it.
        """
        return self._files.read(record.id + 1)

    def _drop(self, record: Record) -> None:
        self._storage.delete(self._files.name(record.id))
        self._late_until.pop(record.id, None)

    def _drop_old_claims(self) -> None:
        for claim in self._old_claims():
            self._drop(claim)
            del self._records[claim.id]

    def _delete_what_came_late(self, before: int) -> None:
        """Deletes records of ids before our claim that are none of the log: nobody else may create one there."""
        for record_id in self._files.ids():
            if record_id < before and record_id not in self._records:
                self._storage.delete(self._files.name(record_id))
