"""A completed-checkpoint store in a directory: an append-only log of small records, each created exclusively."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Set
from itertools import groupby
from typing import NoReturn

from spark_ckpt.clock import Clock
from spark_ckpt.completed.base import CLAIMS_KEPT, RecordStore
from spark_ckpt.completed.errors import ClaimDeletedError, DamagedRecordError, FencedError, UnknownOutcomeError
from spark_ckpt.completed.record_files import LOG, RecordFiles
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record, encode_record
from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.storage import Storage, Whose, create_and_find

_log = logging.getLogger(__name__)

LATE_REQUEST_SECONDS = 3600.0
"""Time that a request with an unknown outcome may still be on its way, by the monotonic clock."""

_MOST_CLAIMS = 50
_SETTLE_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.1


class FilesystemCompletedCheckpointStore(RecordStore):
    """The log of docs/protocol.md, section 3.

    The fence: an owner's next id is the one after the last it knows. A new driver takes that very id for its claim,
    so the earlier owner, whenever it comes back, loses the exclusive create of its next record, reads the claim, and
    is shut out. Should that claim have been dropped meanwhile, then the create succeeds, but claims are dropped in the
    order of ids: the earlier owner's own claim is gone as well, which it looks for before it relies on its record.
    Nothing depends on clocks, leases or on the earlier driver being dead.

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
        self._claim: ClaimRecord | None = None
        self._in_doubt: CheckpointRecord | None = None
        self._late_until: dict[int, float] = {}

    def recover(self) -> None:
        """Reads the log until two readings agree, since records come and go while it is read."""
        self._records = self._files.read_all(self._records)
        self._count_from_records()

    def leave_out_damaged(self) -> list[str]:
        """Finds the damaged records, and reads past them from now on."""
        damaged = [i for i, found in self._files.read_each().items() if isinstance(found, DamagedRecordError)]
        self._files.leave_out(damaged)
        self._counter.set_count(max([self._counter.get(), *(i + 1 for i in damaged)]))
        return [self._files.name(i) for i in damaged]

    def claim(self) -> ClaimRecord:
        """Takes the next id with a higher generation than any; again with the one after if another was faster."""
        self._storage.probe(self._files.directory)
        for _ in range(_MOST_CLAIMS):
            surplus = self._surplus_claims(CLAIMS_KEPT - 1)
            claim = self._next_claim(str(uuid.uuid4()), surplus)
            if self._create(claim) is None:
                # What the owner before dropped since our reading is gone; its later tries see our claim.
                there = self._files.read_all({**self._records, claim.id: claim})
                if claim.id in there:
                    break
                # The owner had taken and dropped this id since our reading: our claim is void.
            self.recover()
        else:
            raise StorageError(
                self._storage.describe(self._files.directory),
                "claim",
                f"other drivers were faster {_MOST_CLAIMS} times",
            )
        self._claimed(claim)
        self._claim, self._in_doubt = claim, None
        # A driver that has claimed since is not counted in: our next id is the one that it took.
        self._records = {i: record for i, record in there.items() if i <= claim.id}
        if (newest := max(there)) > claim.id:
            with contextlib.suppress(FencedError):
                self._fence_off(there[newest])
        else:
            self._delete_void_records(claim.id, {other.id for other in surplus if other.seen is None})
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
        return self._late_until.get(checkpoint.id, 0) <= self._clock.monotonic()

    def check_owner(self) -> None:
        """Looks at the next id, which a driver that takes over takes, and then for the claim of this driver: as long as
        that is there, so is the one that follows it."""
        self._check_open()
        if self._in_doubt is None and (other := self._files.read(self._counter.get())) is not None:
            self._fence_off(other)
        if not self._has_claim():
            self._fence_off(None)

    def keep_counting(self) -> None:
        """Claims the next id: the last record in the log is the counter, and a claim stays.

        Without it the next driver would use the ids of the dropped checkpoints, and the names of their files, while
        requests to delete these may still be on their way.
        """
        self._check_open()
        claim = self._next_claim(str(uuid.uuid4()))
        other = self._create(claim)
        if other is not None or not self._has_claim():
            self._fence_off(other)
        self._claimed(claim)
        self._claim = claim

    # ---- the exclusive create ----------------------------------------------------------------------------------------

    def _complete(self, record: CheckpointRecord, again: bool = False) -> CheckpointRecord:
        try:
            other = self._create(record, again)
            is_owner = other is None and self._confirm(record)
        except UnknownOutcomeError:
            self._in_doubt = record
            raise
        self._in_doubt = None
        if not is_owner:
            self._fence_off(other)
        self._took(record)
        return record

    def _confirm(self, record: CheckpointRecord) -> bool:
        """True if this driver owned the log when it created its record. One whose next id is free again did not.

        If it was not, its record does not count, and the next claim deletes it. This driver deletes nothing any more.

        Raises:
            UnknownOutcomeError: the storage does not say.
        """
        try:
            return self._has_claim()
        except (StorageError, DamagedRecordError) as e:
            raise UnknownOutcomeError(self._files.path(record.id), e) from e

    def _has_claim(self) -> bool:
        """True if this driver's claim is there. Its id may hold a record of a driver that was paused even longer."""
        return self._files.read(self._claim_id) == self._claim

    def _fence_off(self, other: Record | None) -> NoReturn:
        """Gives up for good; `other` is a record of the driver that has taken over, if it is known."""
        if other is None:
            with contextlib.suppress(SparkCkptError):
                later = (r for r in self._files.read_all().values() if r.generation > self._generation)
                other = max(later, key=lambda record: record.id, default=None)
        if other is not None:
            self._fence = FencedError(self._files.path(other.id), self._generation, other.generation, str(other.owner))
        else:
            self._fence = ClaimDeletedError(self._files.path(self._claim_id), self._generation)
        raise self._fence

    def _create(self, record: Record, again: bool = False) -> Record | None:
        """Creates a record, `again` if an earlier request may have done so.

        Returns:
            None if it is there now, else the record of another driver at its id or after it.

        Raises:
            UnknownOutcomeError: neither could be found out.
        """
        successor: Record | None = None
        pause_seconds = _FIRST_PAUSE_SECONDS

        def overtaken() -> bool:
            nonlocal successor
            successor = self._successor(record)
            return successor is not None

        def pause() -> None:
            nonlocal pause_seconds
            self._clock.sleep(pause_seconds)
            pause_seconds *= 2

        name, data = self._files.name(record.id), encode_record(record)
        found = create_and_find(self._storage, name, data, _SETTLE_TRIES, again=again, pause=pause, overtaken=overtaken)
        if found.may_arrive:
            self._late_until[record.id] = self._clock.monotonic() + LATE_REQUEST_SECONDS
        if found.whose is Whose.MINE:
            return None
        other = successor if found.there is None else self._files.decode(record.id, found.there)
        if found.whose is Whose.UNKNOWN or other is None:
            raise UnknownOutcomeError(self._files.path(record.id), found.cause)
        return other

    def _successor(self, record: Record) -> Record | None:
        """The record after a given one, asked for if the answer to its request got lost.

        An earlier request may have created the record, the next owner dropped it, and a later request brought it back.
        It stays all the same, for that owner may as well have counted it; the next claim drops it.
        """
        return self._files.read(record.id + 1)

    def _drop(self, record: Record) -> None:
        self._storage.delete(self._files.name(record.id))
        self._late_until.pop(record.id, None)

    def _delete_void_records(self, before: int, at_once: Set[int]) -> None:
        """Deletes the records below our claim that it has not seen: surplus claims, and records of drivers that did not
        own the log. What cannot be deleted now is left to the next claim.

        They go in the order of ids, each after the one before is gone: as long as an owner finds its own claim, the one
        that shuts it out is there too.

        Args:
            before: id of our claim.
            at_once: ids of claims whose owners, of an earlier release, do not look for them.
        """
        void = [i for i in self._files.listed if i < before and i not in self._records]
        try:
            for is_at_once, ids in groupby(void, lambda i: i in at_once):
                names = [self._files.name(i) for i in ids]
                for group in [names] if is_at_once else [[name] for name in names]:
                    self._storage.delete_all(group)
        except StorageError as e:
            _log.warning("records that do not count any more stay for now: %s", e)
