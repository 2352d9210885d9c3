"""A completed-checkpoint store in ZooKeeper: records in nodes, and state in the file system."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from spark_ckpt.clock import Clock
from spark_ckpt.completed.base import CLAIMS_KEPT, RecordStore
from spark_ckpt.completed.errors import (
    FencedError,
    LocationMovedError,
    OwnershipLostError,
    UnknownOutcomeError,
    ZooKeeperUnavailableError,
)
from spark_ckpt.completed.mirror import Mirror
from spark_ckpt.completed.record_files import read_settled
from spark_ckpt.completed.records import CheckpointRecord, ClaimRecord, Owner, Record, decode_record, encode_record
from spark_ckpt.completed.store import JobStatus
from spark_ckpt.completed.void import check_generations
from spark_ckpt.completed.zookeeper_counter import ZooKeeperCheckpointIDCounter
from spark_ckpt.completed.zookeeper_session import NoAnswerError, ZooKeeperSession
from spark_ckpt.errors import StorageError

_log = logging.getLogger(__name__)

_TRIES = 3
_MOST_CLAIMS = 50
_MOST_DROPPED = 1000
"""Claims that go with one transaction, whose size ZooKeeper limits."""


class ZooKeeperCompletedCheckpointStore(RecordStore):
    """Truth is below one node (Flink: `ZooKeeperStateHandleStore`); `_metadata` and state are files.

    | node | data |
    |---|---|
    | `<path>` | the checkpoint location, so that two of them cannot share a node |
    | `<path>/counter` | the next id |
    | `<path>/records/<id, 20 digits>` | a record, as in docs/protocol.md, section 3 |
    | `<path>/owner-<generation>` | ephemeral: the owner and its session live; the claim again |

    The fence: a claim takes an id, makes an owner's node of a higher generation and deletes that of the owner before,
    in one transaction. It waits for no session to expire. Completing a checkpoint is one transaction as well, and is
    refused unless the owner's own node is there and no other driver has taken an id. Names of owners' nodes are never
    used again, so an owner whose node is gone is shut out for good, whether or not another one has taken over.

    Records are repeated as files in `ckpt/completed`, for readers without ZooKeeper. These follow the truth as well as
    they can, in the order of ids; what fails is made up for with the next record. A node that is not there yet takes
    over the records of such files.

    Args:
        session: with the servers.
        path: the location's node.
        mirror: the files, and the location's name.
        owner: this driver.
        clock: for timestamps.
    """

    def __init__(
        self, session: ZooKeeperSession, path: str, mirror: Mirror, owner: Owner, clock: Clock | None = None
    ) -> None:
        super().__init__(owner, clock)
        self._session = session
        self.path = path
        """The location's node."""
        self._mirror = mirror
        self._ids = ZooKeeperCheckpointIDCounter(session, f"{path}/counter")
        self._counter = self._ids
        self._in_doubt: CheckpointRecord | None = None

    def recover(self) -> None:
        """Reads the nodes until two readings agree.

        Raises:
            LocationMovedError: the node is another location's.
            ZooKeeperUnavailableError: no server answers.
        """
        # The counter first: should a record come while they are read, then a claim that counts on this fails.
        if not self._ids.read():
            self._records = self._mirror.read()
            self._ids.start_from(1 + max(self._records, default=0))
            return
        self._check_location()
        self._records = self._read_records()

    def claim(self) -> ClaimRecord:
        """Takes the next id with a higher generation than any, and puts its own node in place of the owner's."""
        self._set_up()
        for _ in range(_MOST_CLAIMS):
            self.recover()
            claim = self._next_claim(str(uuid.uuid4()))
            if self._try_claim(claim):
                break
        else:
            raise StorageError(self._where(""), "claim", f"other drivers were faster {_MOST_CLAIMS} times")
        self._ids.took(claim.id)
        self._generation = claim.generation
        self._fence = None
        self._in_doubt = None
        # What the owner before dropped between our reading and our claim is gone. From now on it can drop nothing. What
        # a driver has added that claimed after us is not ours.
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
        """Looks for the record in doubt, and creates it if it is not there."""
        self._check_open()
        if self._in_doubt is None:
            return None
        return self._complete(self._in_doubt, again=True)

    def check_owner(self) -> None:
        """Looks at the owner's node."""
        self._check_open()
        if not self._session.exists(self._owner_node(self._generation)):
            self._fence_off()

    def shutdown(self, status: JobStatus) -> None:
        """Ends the session."""
        try:
            super().shutdown(status)
        finally:
            self._session.close()

    # ---- writing -----------------------------------------------------------------------------------------------------

    def _complete(self, record: CheckpointRecord, again: bool) -> CheckpointRecord:
        """Creates a record, `again` if an earlier try may have done so."""

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
        self._ids.took(record.id)
        self._records[record.id] = record
        self._mirror.follow(self._records)
        return record

    def _try_claim(self, claim: ClaimRecord) -> bool:
        earlier = self._surplus_claims(CLAIMS_KEPT - 1)[:_MOST_DROPPED]
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
        self._mirror.follow({i: kept for i, kept in self._records.items() if i != record.id}, record.id)

    def _set_up(self) -> None:
        """Makes the location's node, with the records of the files that are there already."""

        def build(transaction: Any) -> None:  # noqa: ANN401
            transaction.create(self.path, self._mirror.location.encode())
            self._ids.create(transaction)
            transaction.create(f"{self.path}/records")
            for record in self._records.values():
                transaction.create(f"{self.path}/{_record_node(record.id)}", encode_record(record))

        if self._session.exists(self.path):
            return
        self._session.ensure(self.path.rpartition("/")[0])
        # If it is refused, then another driver has just made it.
        self._settled(build, lambda: self._session.exists(self.path), again=False)

    def _settled(self, build: Callable[[Any], None], is_done: Callable[[], bool], again: bool) -> bool:
        """Carries out a transaction, and finds out whether it was if no answer comes.

        Args:
            build: its operations.
            is_done: looks for its effect.
            again: True if an earlier try may have done it.

        Returns:
            True if it is carried out; otherwise it is refused, and certainly was not.

        Raises:
            StorageError: that cannot be found out.
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
            # An earlier try may have arrived just before this one, which is refused for that.
            return done or ((again or attempt > 0) and is_done())
        raise StorageError(self._where(""), "write", cause)

    def _fence_off(self) -> NoReturn:
        """Gives up for good, and names the new owner if known: this driver's node is gone, or its id is taken."""
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
        """All records, read until two listings agree; known ones are not read again."""
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
