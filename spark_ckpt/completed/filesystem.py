"""Completed-checkpoint store in a directory: an append-only log of small records, each created exclusively."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Set
from itertools import groupby
from typing import NoReturn

from spark_ckpt.clock import Clock
from spark_ckpt.completed.base import MAX_CLAIMS, RecordStore
from spark_ckpt.completed.errors import ClaimDeletedError, DamagedRecordError, FencedError, UnknownOutcomeError
from spark_ckpt.completed.record_files import LOG, RecordFiles
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record, encode_record
from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.storage import Request, Storage, Whose, create_and_find

_log = logging.getLogger(__name__)

LATE_REQUEST_SECONDS = 3600.0
"""Seconds for which a request with an unknown outcome may still arrive, by the monotonic clock."""

_MAX_CLAIMS = 50
_SETTLE_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.1


class FilesystemCompletedCheckpointStore(RecordStore):
    """Store with the log of docs/protocol.md, section 3.

    The fence: the next id of an owner follows the last one it knows. A new driver takes that same id for its claim, so
    an earlier owner that comes back loses the exclusive create of its next record, reads the claim, and is fenced. If
    that claim has been dropped meanwhile, the create succeeds; but claims are dropped in the order of ids, so the
    earlier owner's own claim is gone as well, and the owner checks for it before it relies on its record. The fence
    depends on no clock, no lease, and not on the death of the earlier driver.

    Args:
        storage: storage of the log.
        owner: this driver.
        directory: name of the log's directory.
        clock: clock for timestamps and pauses.
    """

    def __init__(self, storage: Storage, owner: Owner, directory: str = LOG, clock: Clock | None = None) -> None:
        super().__init__(owner, clock)
        self._storage = storage
        self._files = RecordFiles(storage, directory)
        self._claim: ClaimRecord | None = None
        self._in_doubt: CheckpointRecord | None = None
        self._late_until: dict[int, float] = {}
        self._probe: Request[None] | None = None

    def recover(self) -> None:
        """Reads the log until two listings agree, since records appear and disappear during the read."""
        self._records = self._files.read_all(self._records)
        self._count_from_records()

    def leave_out_damaged(self) -> list[str]:
        """Finds the damaged records and skips them in later reads."""
        damaged = [i for i, found in self._files.read_each().items() if isinstance(found, DamagedRecordError)]
        self._files.leave_out(damaged)
        self._counter.set_count(max([self._counter.get(), *(i + 1 for i in damaged)]))
        return [self._files.name(i) for i in damaged]

    def prepare_claim(self) -> None:
        """Begins to verify that the storage honors the exclusive create."""
        self._probe = self._begin_probe()

    def _begin_probe(self) -> Request[None]:
        return self._storage.begin(lambda: self._storage.probe(self._files.directory))

    def claim(self) -> ClaimRecord:
        """Claims the next id with a generation above all known ones; retries if another driver was faster."""
        probe = self._probe or self._begin_probe()
        self._probe = None
        probe.result()
        for _ in range(_MAX_CLAIMS):
            surplus = self._surplus_claims(MAX_CLAIMS - 1)
            claim = self._next_claim(str(uuid.uuid4()), surplus)
            if self._create(claim) is None:
                # Records that the previous owner dropped since our read are gone; its later attempts see our claim.
                there = self._files.read_all({**self._records, claim.id: claim})
                if claim.id in there:
                    break
                # The owner took and dropped this id since our read: our claim is void.
            self.recover()
        else:
            raise StorageError(
                self._storage.describe(self._files.directory),
                "claim",
                f"lost {_MAX_CLAIMS} races against other drivers",
            )
        self._claimed(claim)
        self._claim, self._in_doubt = claim, None
        # Exclude the records of a driver that has claimed since: our next id is the one it took.
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
        """Creates the record in doubt again: it then exists, by this attempt or the earlier one, or has lost."""
        self._check_open()
        if self._in_doubt is None:
            return None
        return self._complete(self._in_doubt, again=True)

    def may_subsume(self, checkpoint: CheckpointRecord) -> bool:
        """False while a request to create its record may still arrive: that would bring the dropped record back."""
        return self._late_until.get(checkpoint.id, 0) <= self._clock.monotonic()

    def subsume(self, *checkpoints: CheckpointRecord) -> None:
        """Deletes the records, several by one request."""
        if len(checkpoints) < 2:
            super().subsume(*checkpoints)
            return
        self._storage.delete_all([self._files.name(checkpoint.id) for checkpoint in checkpoints])
        for checkpoint in checkpoints:
            self._records.pop(checkpoint.id, None)
            self._late_until.pop(checkpoint.id, None)

    def forget_if_gone(self, checkpoint: CheckpointRecord) -> None:
        """Reads the record itself: only listings show what is deleted."""
        if self._files.read(checkpoint.id) is None:
            self._records.pop(checkpoint.id, None)

    def check_owner(self) -> None:
        """Checks that the next id is free, and then that this driver's claim exists.

        A driver that takes over claims the next id. As long as this driver's claim exists, so does the claim after it.
        """
        self._check_open()
        if self._in_doubt is None and (other := self._files.read(self._counter.get())) is not None:
            self._fence_off(other)
        if not self._has_claim():
            self._fence_off(None)

    def keep_counting(self) -> None:
        """Claims the next id: the last record of the log is the counter, and a claim stays.

        Otherwise the next driver would reuse the ids of the dropped checkpoints, and the names of their files, while
        requests to delete those files may still arrive.
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
        """True if this driver owned the log when it created its record, and did not just find its id free again.

        If it did not, its record does not count, and the next claim deletes it; this driver deletes nothing any more.

        Raises:
            UnknownOutcomeError: the storage does not say.
        """
        try:
            return self._has_claim()
        except (StorageError, DamagedRecordError) as e:
            raise UnknownOutcomeError(self._files.path(record.id), e) from e

    def _has_claim(self) -> bool:
        """True if this driver's claim exists. Its id may hold a record of a driver that was paused even longer."""
        return self._files.read(self._claim_id) == self._claim

    def _fence_off(self, other: Record | None) -> NoReturn:
        """Fences this driver permanently.

        Args:
            other: a record of the driver that has taken over, if known.
        """
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
        """Creates a record exclusively.

        Args:
            record: the record.
            again: True if an earlier request may have created it.

        Returns:
            None if the record exists now, otherwise the record of another driver at its id or after it.

        Raises:
            UnknownOutcomeError: the storage shows neither.
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
        """Record at the id after a given one, read when the answer to the create request got lost.

        An earlier request may have created the given record, the next owner dropped it, and a later request brought it
        back. The record stays even so, because that owner may equally have counted it; the next claim drops it.
        """
        return self._files.read(record.id + 1)

    def _drop(self, record: Record) -> None:
        self._storage.delete(self._files.name(record.id))
        self._late_until.pop(record.id, None)

    def _delete_void_records(self, before: int, at_once: Set[int]) -> None:
        """Deletes the records below our claim that it has not seen.

        These are surplus claims, and records of drivers that did not own the log. The next claim retries failed
        deletions. Deletes in the order of ids, each record after the previous one is gone: as long as an owner finds
        its own claim, the claim that fences it exists too.

        Args:
            before: id of our claim.
            at_once: ids of claims of an earlier release, whose owners do not check for their own claim.
        """
        void = [i for i in self._files.listed if i < before and i not in self._records]
        try:
            for is_at_once, ids in groupby(void, lambda i: i in at_once):
                names = [self._files.name(i) for i in ids]
                for group in [names] if is_at_once else [[name] for name in names]:
                    self._storage.delete_all(group)
        except StorageError as e:
            _log.warning("superseded records stay for now: %s", e)
