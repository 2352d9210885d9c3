"""Mistakes in the log of completed checkpoints and its fence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from spark_ckpt.completed import CheckpointRecord, ClaimRecord, Record, encode_record
from spark_ckpt.completed.base import RecordStore
from spark_ckpt.completed.filesystem import FilesystemCompletedCheckpointStore as Log
from spark_ckpt.completed.zookeeper import ZooKeeperCompletedCheckpointStore as Nodes
from spark_ckpt.coordinator import open_job
from spark_ckpt.coordinator.takeover import committed_by_another
from spark_ckpt.errors import StorageError
from spark_ckpt.storage import CreateOutcome
from tests.simulation.clocks import DAY_MS
from tests.simulation.mutation import (
    CAME_BACK,
    DELETED,
    FOLLOWS,
    NOT_THERE,
    SAID,
    WRONG_STATE,
    Mutation,
    nothing,
    replaced,
)
from tests.simulation.mutation_worlds import (
    ENDED,
    LOST_CREATES,
    NODES,
    OVERTAKEN,
    STANDING_STILL,
    WRONG_CLOCKS,
)


def _same_generation(self: RecordStore, attempt: str, surplus: Collection[ClaimRecord] = ()) -> ClaimRecord:
    generation = max((record.generation for record in self._records.values()), default=1)
    return ClaimRecord(self._counter.get(), generation, self._owner, attempt, self._clock.now_ms())


@contextmanager
def _claims_whatever_was_before() -> Iterator[None]:
    with (
        patch.object(open_job, "check_not_followed", nothing),
        patch.object(open_job, "committed_by_another", nothing),
    ):
        yield


@contextmanager
def _claims_dropped_by_age() -> Iterator[None]:
    """Drops claims by age on a clock that may be wrong, although an earlier owner may have been frozen for days, and
    skips the check for the own claim."""

    def old(self: RecordStore, kept: int = 0) -> list[ClaimRecord]:
        return [claim for claim in self.claims() if claim.timestamp_ms < self._clock.now_ms() - 7 * DAY_MS]

    with patch.object(RecordStore, "_surplus_claims", old), patch.object(Log, "_has_claim", lambda self: True):
        yield


def _create_with(unknown_is: str) -> Callable[[Log, Record, bool], Record | None]:
    """Creates a record without resolving unknown outcomes."""

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
    """Transactions that check neither the existence of the owner's node nor the version of the counter."""
    complete = Nodes._complete

    def force(self: Nodes, record: CheckpointRecord, again: bool) -> CheckpointRecord:
        self._ids.read()
        with patch.object(Nodes, "_owner_node", lambda self, generation: self.path):
            return complete(self, replace(record, id=self._ids.get()), again)

    with patch.object(Nodes, "_complete", force):
        yield


_create_and_find = Log._create


def _lost_create(self: Log, record: Record, again: bool = False) -> Record | None:
    """Takes a create for lost if a layer below has repeated the request, so that the file "exists", and its creator
    cannot be read."""
    result = self._storage.create_exclusive(self._files.name(record.id), encode_record(record))
    if result.outcome is CreateOutcome.WON:
        return None
    if result.outcome is CreateOutcome.UNKNOWN:
        return _create_and_find(self, record, again=True)
    there = self._files.read(record.id)
    return None if there == record else there


def _committed_by_a_claimant(trigger: Any, storage: Any, store: RecordStore, commit: Any) -> Any:
    """Takes any run with a claim for the one that committed the batch."""
    if any(claim.owner.run_id != trigger.job for claim in store.claims()):
        return committed_by_another(trigger, storage, store, commit)
    return None


LOG: dict[str, Mutation] = {
    "generation ignored": Mutation(replaced(Log, "_fence_off", nothing), f"{SAID}|{DELETED}"),
    "claim without a higher generation": Mutation(replaced(RecordStore, "_next_claim", _same_generation), FOLLOWS),
    "unknown outcome taken for lost": Mutation(replaced(Log, "_create", _create_with(unknown_is="lost")), DELETED),
    "unknown outcome taken for won": Mutation(
        replaced(Log, "_create", _create_with(unknown_is="won")), f"{FOLLOWS}|{SAID}"
    ),
    "late requests forgotten": Mutation(replaced(Log, "_successor", nothing), CAME_BACK, STANDING_STILL),
    "overtaken run claims again": Mutation(_claims_whatever_was_before, f"{NOT_THERE}|{WRONG_STATE}", OVERTAKEN),
    "owner does not look for its claim": Mutation(
        replaced(Log, "_has_claim", lambda self: True), f"{SAID}|{CAME_BACK}", WRONG_CLOCKS
    ),
    "claims dropped by their age": Mutation(_claims_dropped_by_age, f"{SAID}|{CAME_BACK}", WRONG_CLOCKS),
    "transaction without an answer taken for done": Mutation(_no_answer_is_success, SAID, NODES),
    "transaction without conditions": Mutation(_unconditional_nodes, FOLLOWS, NODES),
    "create that is there taken for lost": Mutation(replaced(Log, "_create", _lost_create), DELETED, LOST_CREATES),
    "batches of runs without a claim forgotten": Mutation(
        replaced(open_job, "committed_by_another", _committed_by_a_claimant), NOT_THERE, WRONG_CLOCKS
    ),
    "ids taken again after a discard": Mutation(
        replaced(Log, "keep_counting", nothing), "is used for a second content", ENDED
    ),
}
"""Mistakes, by name."""
