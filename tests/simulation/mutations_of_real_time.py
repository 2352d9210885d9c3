"""Mistakes in the two steps by which a checkpoint completes in real-time mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.coordinator import open_job
from spark_ckpt.coordinator.job import Job
from spark_ckpt.messages import Ack, AckReply, EndOffsets, EndOffsetsReply, Trigger
from tests.simulation.faults import Faults
from tests.simulation.mutation import NOT_THERE, Mutation, answered_first
from tests.simulation.profile import Profile

REAL_TIME = Profile(
    real_time=1.0,
    checkpoint_format=2,
    incidents=8,
    weights={"kill side process": 2, "kill driver": 3},
    faults=Faults(pause=0.6),
    batches=7,
)


@contextmanager
def _complete_with_the_last_ack() -> Iterator[None]:
    acknowledge = Job.acknowledge

    def complete(self: Job, ack: Ack) -> AckReply:
        reply = acknowledge(self, ack)
        if self._pending is not None and self._pending.is_complete:
            self._publish(self._pending, ack)
        return reply

    with patch.object(Job, "acknowledge", complete):
        yield


def _answer_first() -> AbstractContextManager[None]:
    def answer(job: Job, request: EndOffsets) -> EndOffsetsReply:
        return EndOffsetsReply(job._open.store.counter.get(), request.version)

    return answered_first("end_offsets", answer, pause=2.0)


@contextmanager
def _continue_from_an_uncommitted_checkpoint() -> Iterator[None]:
    def newest(trigger: Trigger, store: CompletedCheckpointStore) -> CheckpointRecord | None:
        return store.latest_of_version(trigger.version) or store.latest_of_version(trigger.version - 1)

    with patch.object(open_job, "_record_to_start_from", newest):
        yield


REAL_TIME_STEPS: dict[str, Mutation] = {
    "real-time mode: complete with the last ack": Mutation(
        _complete_with_the_last_ack, "has no offsets|the answer is", REAL_TIME
    ),
    "real-time mode: end offsets answered first": Mutation(_answer_first, NOT_THERE, REAL_TIME),
    "real-time mode: continue from an uncommitted checkpoint": Mutation(
        _continue_from_an_uncommitted_checkpoint, "the answer is|is committed", REAL_TIME
    ),
}
"""Mistakes, by name."""
