"""Mistakes in the choice of the acks that count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from spark_ckpt.checkpoint.chains import Chain, Run
from spark_ckpt.compaction import adoption
from spark_ckpt.compaction.requests import CompactionRequests
from spark_ckpt.compaction.state_ids import StateIds
from spark_ckpt.coordinator import finalize
from spark_ckpt.coordinator.attempts import Decision, TaskKey
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.format.segment_ref import NO_BLOCKS, SegmentRef
from spark_ckpt.messages import Ack, AckReply, CompactionRequest, Outcome, Task, TaskFailed
from tests.simulation.mutation import (
    NOT_THERE,
    WRONG_STATE,
    Mutation,
    nothing,
    replaced,
)
from tests.simulation.mutation_worlds import (
    IMPATIENT,
    KILLED,
    MANY_ATTEMPTS,
    MANY_BASES,
    MERGING,
    ONE_BATCH,
    SLOW,
)


def _last_attempt_counts(self: PendingCheckpoint, ack: Ack, now_ms: int) -> Decision:
    self._acked_by.setdefault(TaskKey.of(ack.task), []).append(ack.subtask)
    self.acks[ack.subtask] = ack
    self.arrived_ms[ack.subtask] = now_ms
    return Decision(Outcome.SUCCESS, ack.state_id)


def _first_attempt_counts(self: PendingCheckpoint, ack: Ack, now_ms: int) -> Decision:
    if ack.subtask in self.acks:
        return Decision(Outcome.SUCCESS, ack.state_id)
    return _last_attempt_counts(self, ack, now_ms)


@contextmanager
def _all_but_one() -> Iterator[None]:
    """Takes the state of the unacknowledged subtask for empty."""
    nothing = SegmentRef(1, 1, NO_BLOCKS, 0)

    def take(self: finalize.Draft) -> None:
        given = self.pending.acks
        some = next(iter(given.values()))
        missing = {key: replace(some, subtask=key, delta=nothing, base=None) for key in self.pending.missing()}
        self.acks = given | missing

    complete = property(lambda self: len(self.acks) >= max(1, self.expected - 1))
    with (
        patch.object(PendingCheckpoint, "is_complete", complete),
        patch.object(finalize.Draft, "__post_init__", take),
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
            return AckReply(Outcome.SUCCESS, ack.state_id)
        return refusal(self, ack, outcome, counts, reason)

    with patch.object(Job, "_refusal", accept):
        yield


def _forget_the_acks(self: Job) -> None:
    """Keeps an expired checkpoint pending, without the acks received so far."""
    if self._pending is not None and self.seconds_to_expiry == 0.0:
        for ack in list(self._pending.acks.values()):
            self._pending.withdraw(ack)
        self._expires = self._clock.monotonic() + 600


@contextmanager
def _late_acks_name_the_checkpoint() -> Iterator[None]:
    late_reply = Job._late_reply

    def name(self: Job, ack: Ack, checkpoint: int) -> AckReply:
        return replace(late_reply(self, ack, checkpoint), completed=checkpoint)

    with patch.object(Job, "_late_reply", name):
        yield


@contextmanager
def _chain_without_its_base() -> Iterator[None]:
    """Puts a new base in front of the segments that it replaces."""
    following = Chain.next

    def add(
        self: Chain, state_id: str, rows: int, delta: Any, base: Any = None, base_version: int = 0, merged: Any = None
    ) -> Chain:
        return following(self, state_id, rows, delta, base, 0, merged)

    with patch.object(Chain, "next", add):
        yield


@contextmanager
def _merges_reach_too_far() -> Iterator[None]:
    """Replaces one delta more than was merged."""
    run_of = Chain.run_of

    def further(self: Chain, first_version: int, version: int) -> Run | None:
        run = run_of(self, first_version, version)
        return run and run._replace(end=min(run.end + 1, len(self.entries)))

    with patch.object(Chain, "run_of", further), patch.object(adoption, "useless", nothing):
        yield


ACKS: dict[str, Mutation] = {
    "last attempt counts": Mutation(replaced(PendingCheckpoint, "acknowledge", _last_attempt_counts), WRONG_STATE),
    "acks of failed attempts kept": Mutation(
        replaced(PendingCheckpoint, "acknowledge", _first_attempt_counts), WRONG_STATE
    ),
    "one subtask left out": Mutation(_all_but_one, "rows are recorded|the answer is"),
    "ack withdrawn that others rely on": Mutation(_give_up_all, f"{NOT_THERE}|{WRONG_STATE}", MANY_ATTEMPTS),
    "ack of an expired checkpoint counts": Mutation(_discarded_is_success, NOT_THERE, IMPATIENT),
    "expired checkpoint stays pending": Mutation(replaced(Job, "expire", _forget_the_acks), NOT_THERE, IMPATIENT),
    "late ack ends the next checkpoint": Mutation(
        _late_acks_name_the_checkpoint, NOT_THERE, replace(KILLED, incidents=30, batches=12, twice=0.5)
    ),
    "base beside what it stands for": Mutation(
        _chain_without_its_base, "a base in the middle|a base is not used", MANY_BASES
    ),
    "bases of old versions ignored": Mutation(
        replaced(StateIds, "hold", nothing), "a base is not used that was [0-9]+ versions old", SLOW
    ),
    "merged deltas replace others": Mutation(_merges_reach_too_far, f"rows are recorded|{WRONG_STATE}", MERGING),
    "no base in runs of one batch": Mutation(
        replaced(CompactionRequests, "on_load", lambda *_: CompactionRequest()), "a chain has", ONE_BATCH
    ),
}
"""Mistakes, by name."""
