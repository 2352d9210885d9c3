"""A completed-checkpoint store in a directory: an append-only log of small records, each created exclusively."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import NoReturn

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record, decode_record, encode_record
from spark_ckpt.completed.store import CheckpointIDCounter, CompletedCheckpointStore, JobStatus
from spark_ckpt.errors import CorruptRecordError, FencedError, StateFileNotFoundError, StorageError, UnknownOutcomeError
from spark_ckpt.storage import CreateOutcome, FsspecStorage, Storage

CLAIM_GRACE_MS = 7 * 24 * 3600 * 1000
"""How long a claim is kept at least, so that the driver it shut out still finds its next id taken."""

LATE_REQUEST_MS = 3600 * 1000
"""How long a request whose outcome was unknown may still be on its way."""

_RECORD_NAME = re.compile(r"([0-9]{20})\.json")
_SETTLE_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.1
_MOST_READINGS = 20


class FilesystemCheckpointIDCounter(CheckpointIDCounter):
    """The id after the last one in the log. Taking an id reserves nothing: creating the record does."""

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


class FilesystemCompletedCheckpointStore(CompletedCheckpointStore):
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

    def __init__(
        self, storage: Storage, owner: Owner, directory: str = "ckpt/completed", clock: Clock | None = None
    ) -> None:
        self._storage = storage
        self._owner = owner
        self._directory = directory
        self._clock = clock or SystemClock()
        self._counter = FilesystemCheckpointIDCounter()
        self._records: dict[int, Record] = {}
        self._generation = 0
        self._fence: FencedError | None = None
        self._in_doubt: CheckpointRecord | None = None
        self._late_until: dict[int, int] = {}

    def recover(self) -> None:
        """Reads the log until two readings agree, since records come and go while it is read."""
        ids = self._list_ids()
        for _ in range(_MOST_READINGS):
            records = self._read_all(ids)
            again = self._list_ids()
            if records is not None and again == ids:
                self._records = records
                self._counter.set_count(max([self._counter.get(), *(i + 1 for i in ids)]))
                return
            ids = again
        raise StorageError(
            self._storage.describe(self._directory), "read", f"it changed during each of {_MOST_READINGS} readings"
        )

    def claim(self) -> ClaimRecord:
        """Takes the next id with a higher generation than any; again with the one after if somebody was faster."""
        if isinstance(self._storage, FsspecStorage):
            self._storage.probe(f"{self._directory}/probe-{uuid.uuid4().hex}")
        while True:
            claim = ClaimRecord(
                id=self._counter.get(),
                generation=1 + max((record.generation for record in self._records.values()), default=0),
                owner=self._owner,
                attempt=str(uuid.uuid4()),
                timestamp_ms=self._clock.now_ms(),
            )
            if self._create(claim) is None:
                break
            self.recover()
        self._took(claim)
        self._generation = claim.generation
        self._fence = None
        self._in_doubt = None
        # What the owner before dropped between our reading and our claim is gone; its later tries see our claim.
        self.recover()
        self._drop_old_claims()
        return claim

    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Creates the record of the next id."""
        self._check_open()
        if self._in_doubt is not None:
            raise UnknownOutcomeError(self._path(self._in_doubt.id), None)
        return self._complete(make_record(self._counter.get(), str(uuid.uuid4())))

    def settle(self) -> CheckpointRecord | None:
        """Creates the record in doubt once more: then it is there, by this try or the earlier one, or it has lost."""
        self._check_open()
        if self._in_doubt is None:
            return None
        return self._complete(self._in_doubt)

    def subsume(self, checkpoint: CheckpointRecord) -> None:
        """Deletes the record."""
        self._storage.delete(self._name(checkpoint.id))
        self._records.pop(checkpoint.id, None)
        self._late_until.pop(checkpoint.id, None)

    def may_subsume(self, checkpoint: CheckpointRecord) -> bool:
        """Not while an earlier request to create its record may still arrive: it would bring a dropped record back."""
        return self._late_until.get(checkpoint.id, 0) <= self._clock.now_ms()

    def all(self) -> list[CheckpointRecord]:
        """The checkpoints, ascending by id."""
        return [record for _, record in sorted(self._records.items()) if isinstance(record, CheckpointRecord)]

    def claims(self) -> list[ClaimRecord]:
        """The claims that are still kept, ascending by id."""
        return [record for _, record in sorted(self._records.items()) if isinstance(record, ClaimRecord)]

    def check_owner(self) -> None:
        """Looks at the next id: a driver that takes over takes that one."""
        self._check_open()
        record_id = self._counter.get()
        if self._in_doubt is not None or not self._storage.exists(self._name(record_id)):
            return
        self._fence_off(decode_record(self._storage.read(self._name(record_id)), self._path(record_id), record_id))

    @property
    def counter(self) -> CheckpointIDCounter:
        """The counter of ids."""
        return self._counter

    @property
    def generation(self) -> int:
        """The generation of this driver's claim; 0 before it has claimed."""
        return self._generation

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

    # ---- the exclusive create ----------------------------------------------------------------------------------------

    def _complete(self, record: CheckpointRecord) -> CheckpointRecord:
        try:
            other = self._create(record)
        except UnknownOutcomeError:
            self._in_doubt = record
            raise
        self._in_doubt = None
        if other is not None:
            self._fence_off(other)
        self._took(record)
        return record

    def _fence_off(self, other: Record) -> NoReturn:
        self._fence = FencedError(self._path(other.id), self._generation, other.generation, str(other.owner))
        raise self._fence

    def _create(self, record: Record) -> Record | None:
        """Creates a record.

        Returns:
            None if it is there now, else the record of somebody else that has its id.

        Raises:
            UnknownOutcomeError: neither could be found out.
        """
        name, data = self._name(record.id), encode_record(record)
        pause = _FIRST_PAUSE_SECONDS
        cause: BaseException | None = None
        for attempt in range(_SETTLE_TRIES):
            if attempt:
                self._clock.sleep(pause)
                pause *= 2
            # The same bytes again after an unknown outcome: should the first request still arrive, it finds its own
            # file.
            try:
                result = self._storage.create_exclusive(name, data)
            except StorageError as e:
                if cause is None:
                    raise
                cause = e  # this try certainly failed, but an earlier one may have not
                continue
            if result.outcome is CreateOutcome.WON:
                return None
            if result.outcome is CreateOutcome.UNKNOWN:
                self._late_until[record.id] = self._clock.now_ms() + LATE_REQUEST_MS
            cause = result.cause or cause
            # "Exists" is no proof that somebody else was first: clients repeat requests whose answer got lost.
            try:
                there = self._storage.read(name)
            except StateFileNotFoundError:
                continue
            except StorageError as e:
                cause = e
                continue
            return None if there == data else decode_record(there, self._path(record.id), record.id)
        raise UnknownOutcomeError(self._path(record.id), cause)

    def _took(self, record: Record) -> None:
        self._records[record.id] = record
        self._counter.set_count(record.id + 1)

    def _check_open(self) -> None:
        if self._fence is not None:
            raise self._fence
        if self._generation == 0:
            raise RuntimeError("the store has not been claimed, or is shut down")

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _list_ids(self) -> list[int]:
        matches = (_RECORD_NAME.fullmatch(file.name) for file in self._storage.list(self._directory))
        return sorted(int(match[1]) for match in matches if match)

    def _read_all(self, ids: list[int]) -> dict[int, Record] | None:
        """The records of these ids, or None if one is gone. Records never change, so known ones are not read again."""
        records: dict[int, Record] = {}
        for record_id in ids:
            known = self._records.get(record_id)
            if known is None:
                try:
                    known = decode_record(self._storage.read(self._name(record_id)), self._path(record_id), record_id)
                except StateFileNotFoundError:
                    return None
            records[record_id] = known
        last = 0
        for record_id, record in records.items():
            if record.generation < last:
                raise CorruptRecordError(
                    self._path(record_id), f"generation {record.generation} after generation {last}"
                )
            last = record.generation
        return records

    def _drop_old_claims(self) -> None:
        """Drops claims past the grace time. The newest stays: it holds the generation."""
        for claim in self.claims()[:-1]:
            if claim.timestamp_ms < self._clock.now_ms() - CLAIM_GRACE_MS:
                self._storage.delete(self._name(claim.id))
                del self._records[claim.id]

    def _name(self, record_id: int) -> str:
        return f"{self._directory}/{record_id:020d}.json"

    def _path(self, record_id: int) -> str:
        return self._storage.describe(self._name(record_id))
