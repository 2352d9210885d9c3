"""Completed-checkpoint store in ZooKeeper: records in nodes, and state in the file system."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from spark_ckpt.clock import Clock
from spark_ckpt.completed.base import MAX_CLAIMS, RecordStore
from spark_ckpt.completed.errors import (
    FencedError,
    LocationMovedError,
    OwnershipLostError,
    UnknownOutcomeError,
    ZooKeeperAccessError,
    ZooKeeperUnavailableError,
)
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.record_files import read_settled
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record, decode_record, encode_record
from spark_ckpt.completed.store import JobStatus
from spark_ckpt.completed.void_records import check_generations
from spark_ckpt.completed.zookeeper_counter import ZooKeeperCheckpointIDCounter
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from spark_ckpt.errors import StorageError

_TRIES = 3
_MAX_CLAIMS = 50
_MAX_DROPPED = 1000
"""Maximum number of claims deleted in one transaction, whose size ZooKeeper limits."""


class ZooKeeperCompletedCheckpointStore(RecordStore):
    """Store with its records below one node (Flink: `ZooKeeperStateHandleStore`); `_metadata` and state are files.

    | node | data |
    |---|---|
    | `<path>` | the checkpoint location, so that two locations cannot share a node |
    | `<path>/counter` | the next id |
    | `<path>/records/<id, 20 digits>` | a record, as in docs/protocol.md, section 3 |
    | `<path>/owner-<generation>` | ephemeral, exists while the owner and its session live; a copy of the claim |

    The fence: one transaction takes an id for the claim, creates an owner node of a higher generation and deletes the
    previous owner's node. It waits for no session to expire. Completing a checkpoint is one transaction as well, which
    fails unless the owner's own node exists and no other driver has taken an id. Names of owner nodes are never
    reused, so an owner whose node is gone is fenced permanently, whether or not another driver has taken over.

    Records are mirrored as files in `ckpt/completed`, for readers without ZooKeeper. The mirror is best effort, in the
    order of ids; the next record retries failed writes. A new node takes over the records of existing files.

    Args:
        session: session with the servers.
        path: node of the location.
        mirror: mirror of the records as files; names the location.
        owner: this driver.
        clock: clock for timestamps.
    """

    def __init__(
        self, session: ZooKeeperSession, path: str, mirror: Mirror, owner: Owner, clock: Clock | None = None
    ) -> None:
        super().__init__(owner, clock)
        self._session = session
        self.path = path
        """Node of the location."""
        self._mirror = mirror
        self._ids = ZooKeeperCheckpointIDCounter(session, f"{path}/counter")
        self._counter = self._ids
        self._in_doubt: CheckpointRecord | None = None

    def recover(self) -> None:
        """Reads the nodes until two listings agree.

        Raises:
            LocationMovedError: the node belongs to another location.
            ZooKeeperUnavailableError: no server answers.
        """
        # The counter first: if a record appears during the read, a claim based on this read fails.
        if not self._ids.read():
            self._records = self._mirror.read()
            self._ids.start_from(1 + max(self._records, default=0))
            return
        self._check_location()
        self._records = self._read_records()

    def claim(self) -> ClaimRecord:
        """Claims the next id with a generation above all known ones, and replaces the owner node with its own."""
        self._set_up()
        for _ in range(_MAX_CLAIMS):
            self.recover()
            claim = self._next_claim(str(uuid.uuid4()))
            if self._try_claim(claim):
                break
        else:
            raise StorageError(self._where(""), "claim", f"lost {_MAX_CLAIMS} races against other drivers")
        self._ids.move_past(claim.id)
        self._generation = claim.generation
        self._fence = None
        self._in_doubt = None
        # Records that the previous owner dropped between our read and our claim are gone; from now on it can drop
        # nothing. Records of a driver that claimed after us are not ours.
        self._records = {i: record for i, record in self._read_records().items() if i <= claim.id}
        self._mirror.follow(self._records)
        return claim

    def add(self, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        """Creates the record of the next id."""
        self._check_open()
        if self._in_doubt is not None:
            raise UnknownOutcomeError(self._where(_record_node(self._in_doubt.id)), None)
        return self._complete(make_record(self._counter.get(), str(uuid.uuid4())), again=False)

    def settle(self) -> CheckpointRecord | None:
        """Reads the record in doubt, and creates it if it does not exist."""
        self._check_open()
        if self._in_doubt is None:
            return None
        return self._complete(self._in_doubt, again=True)

    @property
    def shows_drops(self) -> bool:
        """True if the mirror has followed."""
        return self._mirror.is_current

    def check_owner(self) -> None:
        """Checks that this driver's owner node exists."""
        self._check_open()
        if not self._session.exists(self._owner_node(self._generation)):
            self._fence_off()

    def shutdown(self, status: JobStatus) -> None:
        """Closes the store and its session."""
        try:
            super().shutdown(status)
        finally:
            self._session.close()

    # ---- writing -----------------------------------------------------------------------------------------------------

    def _complete(self, record: CheckpointRecord, again: bool) -> CheckpointRecord:
        """Creates a record; with `again`, an earlier attempt may have created it already."""

        def build(transaction: Any) -> None:  # noqa: ANN401
            transaction.check(self._owner_node(self._generation), 0)
            self._ids.take(transaction)
            transaction.create(f"{self.path}/{_record_node(record.id)}", encode_record(record))

        self._in_doubt = record
        try:
            done = self._settled(build, lambda: self._read_record(record.id) == record, again)
        except StorageError as e:
            raise UnknownOutcomeError(self._where(_record_node(record.id)), e) from e
        self._in_doubt = None
        if not done:
            self._fence_off()
        self._ids.move_past(record.id)
        self._records[record.id] = record
        self._mirror.follow(self._records)
        return record

    def _try_claim(self, claim: ClaimRecord) -> bool:
        earlier = self._surplus_claims(MAX_CLAIMS - 1)[:_MAX_DROPPED]
        owners = [name for name in self._session.children(self.path) if name.startswith("owner-")]

        def build(transaction: Any) -> None:  # noqa: ANN401
            self._ids.take(transaction)
            transaction.create(f"{self.path}/{_record_node(claim.id)}", encode_record(claim))
            transaction.create(self._owner_node(claim.generation), encode_record(claim), ephemeral=True)
            for before in earlier:
                transaction.delete(f"{self.path}/{_record_node(before.id)}")
            for name in owners:
                transaction.delete(f"{self.path}/{name}")

        def is_done() -> bool:
            found = self._session.get(self._owner_node(claim.generation))
            return found is not None and found[0] == encode_record(claim)

        return self._settled(build, is_done, again=False)

    def _drop(self, record: Record) -> None:
        name = f"{self.path}/{_record_node(record.id)}"

        def build(transaction: Any) -> None:  # noqa: ANN401
            transaction.check(self._owner_node(self._generation), 0)
            transaction.delete(name)

        if not self._settled(build, lambda: not self._session.exists(name), again=True):
            self._fence_off()
        self._mirror.follow({i: other for i, other in self._records.items() if i != record.id}, record.id)

    def _set_up(self) -> None:
        """Creates the location's node, with the records of existing files."""

        def build(transaction: Any) -> None:  # noqa: ANN401
            transaction.create(self.path, self._mirror.location.encode())
            self._ids.create(transaction)
            transaction.create(f"{self.path}/records")
            for record in self._records.values():
                transaction.create(f"{self.path}/{_record_node(record.id)}", encode_record(record))

        if self._session.exists(self.path):
            return
        parent = self.path.rpartition("/")[0]
        self._session.ensure_shared(parent)
        # A rejected transaction means that another driver has just created the node.
        try:
            self._settled(build, lambda: self._session.exists(self.path), again=False)
        except ZooKeeperAccessError as e:
            raise self._session.no_access_below(parent) from e

    def _settled(self, build: Callable[[Any], None], is_done: Callable[[], bool], again: bool) -> bool:
        """Commits a transaction, and determines its outcome if no answer arrives.

        Args:
            build: adds the operations to the transaction.
            is_done: checks for the effect of the transaction.
            again: True if an earlier attempt may have committed it.

        Returns:
            True if the transaction is committed; False if it was rejected and certainly had no effect.

        Raises:
            StorageError: the outcome remains unknown.
        """
        cause: Exception | None = None
        for attempt in range(_TRIES):
            if (again or attempt) and is_done():
                return True
            try:
                done = self._session.commit(build) is not None
            except NoAnswerError as e:
                cause = e
                continue
            # This attempt may be rejected because an earlier one arrived just before it.
            return done or ((again or attempt > 0) and is_done())
        raise StorageError(self._where(""), "write", cause)

    def _fence_off(self) -> NoReturn:
        """Fences this driver permanently, since its node is gone or its id is taken; names the new owner if known."""
        try:
            newest = max(self._read_claims(), key=lambda claim: claim.generation, default=None)
        except ZooKeeperUnavailableError:
            newest = None
        node = self._where(f"owner-{self._generation}")
        if newest is not None and newest.generation > self._generation:
            self._fence = FencedError(node, self._generation, newest.generation, str(newest.owner))
        else:
            self._fence = OwnershipLostError(node, self._generation)
        raise self._fence

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _check_location(self) -> None:
        found = self._session.get(self.path)
        location = found[0].decode(errors="replace") if found is not None else ""
        if location != self._mirror.location:
            raise LocationMovedError(self._where(""), location, self._mirror.location)

    def _read_records(self) -> dict[int, Record]:
        """Reads all records until two listings agree. Does not read known records again."""
        known = self._records

        def read(ids: Collection[int]) -> dict[int, Record | None]:
            return {i: known.get(i) or self._read_record(i) for i in ids}

        records: dict[int, Record] = read_settled(self._list_ids, read, self._where("records"))
        check_generations(records, lambda i: self._where(_record_node(i)))
        return records

    def _read_claims(self) -> list[ClaimRecord]:
        records = (self._read_record(record_id) for record_id in self._list_ids())
        return [record for record in records if isinstance(record, ClaimRecord)]

    def _list_ids(self) -> list[int]:
        return sorted(int(name) for name in self._session.children(f"{self.path}/records"))

    def _read_record(self, record_id: int) -> Record | None:
        name = _record_node(record_id)
        found = self._session.get(f"{self.path}/{name}")
        return decode_record(found[0], self._where(name), record_id) if found is not None else None

    def _owner_node(self, generation: int) -> str:
        return f"{self.path}/owner-{generation}"

    def _where(self, name: str) -> str:
        return f"{self._session.address}{self.path}/{name}".rstrip("/")


def _record_node(record_id: int) -> str:
    return f"records/{record_id:020d}"
