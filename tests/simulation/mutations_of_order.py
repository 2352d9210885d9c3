"""Mistakes in the order of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from spark_ckpt.checkpoint import publish
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.completed.filesystem import FilesystemCompletedCheckpointStore as Log
from spark_ckpt.coordinator.job import Job
from spark_ckpt.coordinator.pending import PendingCheckpoint
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.messages import Ack, AckReply, Event, Outcome
from tests.simulation.mutation import (
    INCOMPLETE,
    NOT_THERE,
    SAID,
    Mutation,
    answered_first,
)


@contextmanager
def _record_first() -> Iterator[None]:
    waiting: list[Callable[[], object]] = []
    add = Log.add

    def create_later(storage: Any, name: str, data: bytes) -> bool:
        waiting.append(lambda: storage.create_exclusive(name, data))
        return True

    def add_and_write(self: Log, make_record: Callable[[int, str], CheckpointRecord]) -> CheckpointRecord:
        record = add(self, make_record)
        waiting.pop()()
        return record

    with patch.object(publish, "create_file", create_later), patch.object(Log, "add", add_and_write):
        yield


def _answer_first() -> AbstractContextManager[None]:
    return answered_first("_publish", lambda job, pending, last: job._open.store.counter.get())


@contextmanager
def _success_without_a_checkpoint() -> Iterator[None]:
    acknowledge = Job.acknowledge

    def all_is_well(self: Job, ack: Ack) -> AckReply:
        try:
            return acknowledge(self, ack)
        except SparkCkptError:
            return AckReply(Outcome.SUCCESS, ack.state_id)

    with patch.object(Job, "acknowledge", all_is_well):
        yield


@contextmanager
def _notify_first() -> Iterator[None]:
    complete = Job._publish

    def tell_and_complete(self: Job, pending: PendingCheckpoint, last: Ack) -> int:
        self._tell(Event.COMPLETE, pending.version, self._open.store.counter.get())
        return complete(self, pending, last)

    with patch.object(Job, "_publish", tell_and_complete):
        yield


ORDER: dict[str, Mutation] = {
    "record before metadata": Mutation(_record_first, INCOMPLETE),
    "ack answered before metadata": Mutation(_answer_first, NOT_THERE),
    "ack answered although nothing is durable": Mutation(_success_without_a_checkpoint, NOT_THERE),
    "completion told before it is durable": Mutation(_notify_first, SAID),
}
"""Mistakes, by name."""
