"""Deliberate mistakes in the real code, each of which the simulation must find by an invariant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

from spark_ckpt.completed import CheckpointRecord, ClaimRecord, Record, encode_record
from spark_ckpt.completed.base import RecordStore
from spark_ckpt.completed.filesystem import FilesystemCompletedCheckpointStore as Log
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore as Nodes
from spark_ckpt.coordinator import collection, dropping, finalise, opening
from spark_ckpt.coordinator.attempts import Decision, TaskKey
from spark_ckpt.coordinator.chains import Chain
from spark_ckpt.coordinator.completing import Completion
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.messages import Ack, AckReply, Event, Outcome, Segment, Task, TaskFailed
from spark_ckpt.coordinator.orphans import select_orphans
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.coordinator.registry import SharedStateRegistry
from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.storage import CreateOutcome
from tests.simulation.faults import Faults
from tests.simulation.world import Profile


@dataclass(frozen=True)
class Mutation:
    """A mistake.

    Args:
        make: a context in which the code has it.
        sign: regular expression of what the checks say when they find it.
        profile: kind of world in which it shows; None for random ones.
    """

    make: Callable[[], AbstractContextManager[Any]]
    sign: str
    profile: Profile | None = None


def _replaced(where: object, name: str, by: object) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch.object(where, name, by)


# ---- the order of what is written ------------------------------------------------------------------------------------


@contextmanager
def _record_first() -> Iterator[None]:
    waiting: list[Callable[[], object]] = []
    add = Log.add

    def create_later(storage: Any, draft: Any, path: str, data: bytes) -> bool:
        waiting.append(lambda: storage.create_exclusive(f"ckpt/{path}", data))
        return True

    def add_and_write(self: Log, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        record = add(self, make_record)
        waiting.pop()()
        return record

    with patch.object(finalise, "_create_metadata", create_later), patch.object(Log, "add", add_and_write):
        yield


@contextmanager
def _answer_first() -> Iterator[None]:
    """The checkpoint is made when there is time for it."""
    waiting: list[Callable[[], object]] = []
    complete, housekeeping = Job._complete, Job.housekeeping

    def complete_later(self: Job, pending: PendingCheckpoint, last: Ack) -> int:
        waiting.append(lambda: complete(self, pending, last))
        return self._open.store.counter.get()

    def catch_up(self: Job) -> None:
        try:
            while waiting:
                waiting.pop(0)()
        except SparkCkptError:
            return
        housekeeping(self)

    with patch.object(Job, "_complete", complete_later), patch.object(Job, "housekeeping", catch_up):
        yield


@contextmanager
def _success_without_a_checkpoint() -> Iterator[None]:
    acknowledge = Job.acknowledge

    def all_is_well(self: Job, ack: Ack) -> AckReply:
        try:
            return acknowledge(self, ack)
        except SparkCkptError:
            return AckReply(Outcome.SUCCESS, ack.ckpt_id)

    with patch.object(Job, "acknowledge", all_is_well):
        yield


@contextmanager
def _notify_first() -> Iterator[None]:
    complete = Job._complete

    def tell_and_complete(self: Job, pending: PendingCheckpoint, last: Ack) -> int:
        self._tell(Event.COMPLETE, pending.version, self._open.store.counter.get())
        return complete(self, pending, last)

    with patch.object(Job, "_complete", tell_and_complete):
        yield


# ---- the log and its fence -------------------------------------------------------------------------------------------


def _same_generation(self: RecordStore, attempt: str) -> ClaimRecord:
    generation = max((record.generation for record in self._records.values()), default=1)
    return ClaimRecord(self._counter.get(), generation, self._owner, attempt, self._clock.now_ms())


def _create_with(unknown_is: str) -> Callable[[Log, Record, bool], Record | None]:
    """Creates a record without finding out about unknown outcomes."""

    def create(self: Log, record: Record, again: bool = False) -> Record | None:
        result = self._storage.create_exclusive(self._files.name(record.id), encode_record(record))
        if result.outcome is CreateOutcome.WON or (result.outcome is CreateOutcome.UNKNOWN and unknown_is == "won"):
            return None
        there = self._files.read(record.id)
        if result.outcome is CreateOutcome.LOST and there is not None:
            return None if there == record else there
        raise StorageError(self._files.path(record.id), "create", "taken for lost")

    return create


@contextmanager
def _no_answer_is_success() -> Iterator[None]:
    settled = Nodes._settled

    def believe(self: Nodes, build: Any, is_done: Any, again: bool) -> bool:
        return settled(self, build, lambda: True, again)

    with patch.object(Nodes, "_settled", believe):
        yield


@contextmanager
def _unconditional_nodes() -> Iterator[None]:
    """Transactions do not look whether the owner's node is there, nor at the version of the counter."""
    complete = Nodes._complete

    def force(self: Nodes, record: CheckpointRecord, again: bool) -> CheckpointRecord:
        self._ids.read()
        with patch.object(Nodes, "_owner_node", lambda self, generation: self.path):
            return complete(self, replace(record, id=self._ids.get()), again)

    with patch.object(Nodes, "_complete", force):
        yield


# ---- which acks count ------------------------------------------------------------------------------------------------


def _last_attempt_counts(self: PendingCheckpoint, ack: Ack, now_ms: int) -> Decision:
    self._acked_by.setdefault(TaskKey.of(ack.task), []).append(ack.subtask)
    self.acks[ack.subtask] = ack
    self.arrived_ms[ack.subtask] = now_ms
    return Decision(Outcome.SUCCESS, ack.ckpt_id)


def _first_attempt_counts(self: PendingCheckpoint, ack: Ack, now_ms: int) -> Decision:
    if ack.subtask in self.acks:
        return Decision(Outcome.SUCCESS, ack.ckpt_id)
    return _last_attempt_counts(self, ack, now_ms)


@contextmanager
def _all_but_one() -> Iterator[None]:
    """The state of the subtask that has not acknowledged is taken for empty."""
    nothing = Segment(np.empty(0, np.uint32), np.empty(0, np.int64), 0, 0)

    def take(self: finalise.Draft) -> None:
        given = self.pending.acks
        some = next(iter(given.values()))
        missing = {key: replace(some, subtask=key, delta=nothing, base=None) for key in self.pending.missing()}
        self.acks = given | missing

    complete = property(lambda self: len(self.acks) >= max(1, self.expected - 1))
    with (
        patch.object(PendingCheckpoint, "is_complete", complete),
        patch.object(finalise.Draft, "__post_init__", take),
    ):
        yield


@contextmanager
def _give_up_all() -> Iterator[None]:
    give_up = PendingCheckpoint._give_up

    def forget_who_relies(self: PendingCheckpoint, failed: Task | TaskFailed) -> list[Ack]:
        self._relied_on.clear()
        return give_up(self, failed)

    with patch.object(PendingCheckpoint, "_give_up", forget_who_relies):
        yield


@contextmanager
def _discarded_is_success() -> Iterator[None]:
    refusal = Job._refusal

    def accept(self: Job, ack: Ack, outcome: Outcome, counts: str | None, reason: str | None) -> AckReply:
        if outcome is Outcome.DISCARDED:
            return AckReply(Outcome.SUCCESS, ack.ckpt_id)
        return refusal(self, ack, outcome, counts, reason)

    with patch.object(Job, "_refusal", accept):
        yield


def _forget_the_acks(self: Job) -> None:
    """What has expired stays pending, without what has come so far."""
    if self._pending is not None and self.patience == 0.0:
        for ack in list(self._pending.acks.values()):
            self._pending.withdraw(ack)
        self._expires = self._clock.monotonic() + 600


@contextmanager
def _late_acks_name_the_checkpoint() -> Iterator[None]:
    late_reply = Job._late_reply

    def name(self: Job, ack: Ack, checkpoint: int) -> AckReply:
        return late_reply(self, ack, checkpoint)._replace(completed=checkpoint)

    with patch.object(Job, "_late_reply", name):
        yield


@contextmanager
def _chain_without_its_base() -> Iterator[None]:
    """A new base comes in front of the segments that it stands for."""
    following = Chain.next

    def add(self: Chain, ckpt_id: str, rows: int, delta: Any, base: Any = None, base_version: int = 0) -> Chain:
        return following(self, ckpt_id, rows, delta, base, 0)

    with patch.object(Chain, "next", add):
        yield


# ---- what is deleted -------------------------------------------------------------------------------------------------


def _files_of_dropped(self: SharedStateRegistry, checkpoint_id: int) -> list[str]:
    files = self._files_of.pop(checkpoint_id, frozenset())
    self._uses.subtract(files)
    return sorted(files)


@contextmanager
def _orphans_before_the_claim() -> Iterator[None]:
    claim = Log.claim

    def delete_first(self: Log) -> Any:
        self.recover()
        known = {record.metadata.path for record in self.all()}
        for directory in self._storage.list("ckpt"):
            path = f"{directory.name}/_metadata"
            if directory.name.startswith("chk-") and path not in known:
                self._storage.delete(f"ckpt/{path}")
        return claim(self)

    with patch.object(Log, "claim", delete_first):
        yield


@contextmanager
def _files_before_the_record() -> Iterator[None]:
    subsume = RecordStore.subsume

    def delete_first(self: Log, checkpoint: CheckpointRecord) -> None:
        self._storage.delete(f"ckpt/{checkpoint.metadata.path}")
        subsume(self, checkpoint)

    with patch.object(Log, "subsume", delete_first):
        yield


@contextmanager
def _no_grace() -> Iterator[None]:
    with patch.object(collection, "select_orphans", lambda there, used, before_ms: select_orphans(there, used)):
        yield


def _all_put_aside(self: Job) -> None:
    self._open.cleaner.submit(f"ckpt/{path}" for path in self._put_aside)


def _nothing(*arguments: object) -> None:
    """Instead of what should be done."""


IN_DOUBT = Profile(
    faults=Faults(error=0.2, error_after=0.2, late=0.1), large=1.0, settings={"tolerableFailures": "0"}, incidents=4
)
STANDING_STILL = Profile(
    faults=Faults(error_after=0.2, late=0.2, pause=0.6), incidents=8, weights={"freeze driver": 3, "start driver": 3}
)
OVERTAKEN = Profile(
    faults=Faults(pause=0.6),
    incidents=16,
    weights={"kill side process": 3, "freeze driver": 2, "start driver": 2},
    batches=7,
)
TAKING_OVER = Profile(faults=Faults(pause=0.8), incidents=8, weights={"start driver": 1}, batches=8)
MANY_BASES = Profile(large=0.5, speculation=1.0, batches=12, settings={"chain.maxDeltas": "1"}, executors=3)
SHARED_FILES = Profile(large=1.0, speculation=1.0, parallelism=3, settings={"inlineThreshold": "0"})
MANY_ATTEMPTS = Profile(
    speculation=0.5, fetch_failure=0.8, executors=3, layout="stages", faults=Faults(error=0.05), lost_events=0.1
)
KILLED = Profile(incidents=8, weights={"kill side process": 1}, speculation=1.0, executors=3, layout="stores")
IMPATIENT = Profile(settings={"timeout": "1"}, faults=Faults(pause=0.6), layout="stages", parallelism=3)
COLLECTED = Profile(
    incidents=8, weights={"kill driver": 1, "collect garbage": 5}, settings={"inlineThreshold": "0"}, large=0.5
)
NODES = Profile(
    store="zookeeper",
    faults=Faults(error_after=0.1, late=0.1),
    incidents=8,
    weights={"freeze driver": 2, "start driver": 3},
)

_INCOMPLETE = "incomplete the moment it is recorded"
_DELETED = "is deleted, and the retained checkpoints"
_NOT_THERE = "is committed, and the retained checkpoints have versions"
_SAID = "is said to be (complete|dropped), and is not"
_FOLLOWS = "record [0-9]+ (of generation [0-9]+ )?follows"
_WRONG_STATE = "Spark counts state|the answer is"

MUTATIONS: dict[str, Mutation] = {
    # The order of what is written.
    "record before metadata": Mutation(_record_first, _INCOMPLETE),
    "ack answered before metadata": Mutation(_answer_first, _NOT_THERE),
    "ack answered although nothing is durable": Mutation(_success_without_a_checkpoint, _NOT_THERE),
    "completion told before it is durable": Mutation(_notify_first, _SAID),
    # The log and its fence.
    "generation ignored": Mutation(_replaced(Log, "_fence_off", _nothing), f"{_SAID}|{_DELETED}"),
    "claim without a higher generation": Mutation(_replaced(RecordStore, "_next_claim", _same_generation), _FOLLOWS),
    "unknown outcome taken for lost": Mutation(_replaced(Log, "_create", _create_with(unknown_is="lost")), _DELETED),
    "unknown outcome taken for won": Mutation(
        _replaced(Log, "_create", _create_with(unknown_is="won")), f"{_FOLLOWS}|{_SAID}"
    ),
    "late requests forgotten": Mutation(
        _replaced(Log, "_successor", _nothing), "brought back after it was dropped", STANDING_STILL
    ),
    "overtaken run claims again": Mutation(
        _replaced(opening, "_check_not_overtaken", _nothing), f"{_NOT_THERE}|{_WRONG_STATE}", OVERTAKEN
    ),
    "transaction without an answer taken for done": Mutation(_no_answer_is_success, _SAID, NODES),
    "transaction without conditions": Mutation(_unconditional_nodes, _FOLLOWS, NODES),
    # Which acks count.
    "last attempt counts": Mutation(_replaced(PendingCheckpoint, "acknowledge", _last_attempt_counts), _WRONG_STATE),
    "acks of failed attempts kept": Mutation(
        _replaced(PendingCheckpoint, "acknowledge", _first_attempt_counts), _WRONG_STATE
    ),
    "one subtask left out": Mutation(_all_but_one, "rows are recorded|the answer is"),
    "ack withdrawn that others rely on": Mutation(_give_up_all, f"{_NOT_THERE}|{_WRONG_STATE}", MANY_ATTEMPTS),
    "ack of an expired checkpoint counts": Mutation(_discarded_is_success, _NOT_THERE, IMPATIENT),
    "expired checkpoint stays pending": Mutation(_replaced(Job, "expire", _forget_the_acks), _NOT_THERE, IMPATIENT),
    "late ack ends the next checkpoint": Mutation(
        _late_acks_name_the_checkpoint, _NOT_THERE, replace(KILLED, incidents=30, batches=12, twice=0.5)
    ),
    "base beside what it stands for": Mutation(_chain_without_its_base, "a base in the middle", MANY_BASES),
    # What is deleted.
    "only the newest checkpoint kept": Mutation(
        _replaced(dropping, "select_subsumed", lambda checkpoints, retained: checkpoints[:-1]), _NOT_THERE
    ),
    "files deleted before the record": Mutation(_files_before_the_record, _DELETED),
    "shared file forgotten": Mutation(_replaced(SharedStateRegistry, "unregister", _files_of_dropped), _DELETED),
    "no look at the owner before deleting": Mutation(_replaced(Log, "check_owner", _nothing), _DELETED, STANDING_STILL),
    "orphans deleted before the claim": Mutation(_orphans_before_the_claim, f"{_DELETED}|{_INCOMPLETE}", TAKING_OVER),
    "files deleted in doubt": Mutation(_replaced(Completion, "acks_in_doubt", {}), _DELETED, IN_DOUBT),
    "file of several tasks deleted with one of them": Mutation(
        _replaced(Job, "_discard_put_aside", _all_put_aside), _DELETED, SHARED_FILES
    ),
    "file name used again": Mutation(
        _replaced(finalise, "new_merged_path", lambda: "shared/merged"), "is used for a second content"
    ),
    "collector without grace": Mutation(_no_grace, f"{_DELETED}|{_INCOMPLETE}", COLLECTED),
}
"""By what is wrong."""
