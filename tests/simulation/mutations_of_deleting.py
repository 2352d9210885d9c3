"""Mistakes in deletions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from spark_ckpt.checkpoint import publish
from spark_ckpt.checkpoint.registry import SharedStateRegistry
from spark_ckpt.compaction import requests
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.completed.base import RecordStore
from spark_ckpt.completed.filesystem import FilesystemCompletedCheckpointStore as Log
from spark_ckpt.coordinator import finalize, subsumption
from spark_ckpt.coordinator.completion import Completion
from spark_ckpt.coordinator.failures import Abort
from spark_ckpt.coordinator.job import Job
from spark_ckpt.location import backlog, orphans
from spark_ckpt.location.orphans import select_orphans
from spark_ckpt.location.tags import Tags
from spark_ckpt.messages import Ack
from spark_ckpt.operations import gc, tagging
from spark_ckpt.storage import Request
from tests.simulation.mutation import (
    DELETED,
    INCOMPLETE,
    NOT_THERE,
    Mutation,
    nothing,
    replaced,
)
from tests.simulation.mutation_worlds import (
    ABORTED,
    COLLECTED,
    GARBAGE_AND_CLOCKS,
    IDLE,
    IN_DOUBT,
    QUIET,
    SHARED_FILES,
    STANDING_STILL,
    TAGGED,
    TAGGED_WHILE_DROPPED,
    TAKING_OVER,
)
from tests.simulation.profile import Profile


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

    def delete_first(self: Log, *checkpoints: CheckpointRecord) -> None:
        self._storage.delete_all([f"ckpt/{checkpoint.metadata.path}" for checkpoint in checkpoints])
        subsume(self, *checkpoints)

    with patch.object(Log, "subsume", delete_first):
        yield


class _NoTags:
    """Tags of a location without any."""

    def __init__(self, storage: object) -> None:
        self.storage = storage

    def records(self) -> dict[int, CheckpointRecord]:
        return {}


@contextmanager
def _no_grace() -> Iterator[None]:
    with patch.object(gc, "select_orphans", lambda there, used, before_ms: select_orphans(there, used)):
        yield


@contextmanager
def _grace_from_now() -> Iterator[None]:
    """Measures the age of an orphan from now, not from the newest checkpoint, and skips the check for lost bases."""
    collect = gc.collect_garbage

    def count_from_now(storage: Any, *, grace_seconds: float, clock: Any, **hooks: Any) -> Any:
        before_ms = clock.now_ms() - int(grace_seconds * 1000)
        with patch.object(gc, "select_orphans", lambda there, used, _: select_orphans(there, used, before_ms)):
            return collect(storage, grace_seconds=grace_seconds, clock=clock, **hooks)

    with (
        patch("tests.simulation.world.collect_garbage", count_from_now),
        patch.object(finalize, "_leave_out_lost_bases", nothing),
    ):
        yield


def _delete_all_at_once(self: Job, acks: Iterable[Ack]) -> None:
    self._open.cleaner.submit(f"ckpt/{path}" for ack in acks for path in ack.paths)


@contextmanager
def _files_of_the_aborted_at_once() -> Iterator[None]:
    abort = Job._abort

    def delete_too(self: Job, why: Abort, keep_files: bool = False) -> None:
        abort(self, why, keep_files)
        self._delete_deferred()

    with patch.object(Job, "_abort", delete_too):
        yield


def _by_the_clock_of_drivers(there: Any, log: Any, log_ms: int) -> int:
    return max((record.timestamp_ms for record in log.records), default=2**62)


@contextmanager
def _tags_listed_before_the_records_are_gone() -> Iterator[None]:
    drop = subsumption.Subsumption._drop

    def list_first(self: subsumption.Subsumption, *arguments: Any) -> bool:
        early = Tags(self._job.storage).list()
        done = drop(self, *arguments)
        if self._tags is not None:
            self._tags = Request(lambda: early)
        return done

    with patch.object(subsumption.Subsumption, "_drop", list_first):
        yield


DELETING: dict[str, Mutation] = {
    "tags listed before the records are gone": Mutation(
        _tags_listed_before_the_records_are_gone, f"{DELETED}|is gone", TAGGED
    ),
    "no look for the record after the tag": Mutation(
        replaced(tagging, "_is_logged", lambda storage, record: True), f"{DELETED}|is gone", TAGGED_WHILE_DROPPED
    ),
    "tags unknown to a start": Mutation(replaced(backlog.Backlog, "_read_tagged", lambda self: []), DELETED, TAGGED),
    "tags unknown to garbage collection": Mutation(
        lambda: patch.object(gc, "Tags", _NoTags),
        f"{DELETED}|{INCOMPLETE}",
        replace(TAGGED, weights=COLLECTED.weights | {"tag a checkpoint": 6}),
    ),
    "garbage as old as the quiet days": Mutation(_grace_from_now, f"{DELETED}|{INCOMPLETE}", QUIET),
    "files deleted that are not ours": Mutation(
        replaced(orphans, "is_ours", lambda directory, name: True), "which is not ours", Profile(foreign=True)
    ),
    "only the newest checkpoint kept": Mutation(
        replaced(subsumption, "select_subsumed", lambda checkpoints, retained, age_ms: checkpoints[:-1]), NOT_THERE
    ),
    "files deleted before the record": Mutation(_files_before_the_record, DELETED),
    "shared file forgotten": Mutation(replaced(SharedStateRegistry, "unregister", _files_of_dropped), DELETED),
    "no look at the owner before deleting": Mutation(replaced(Log, "check_owner", nothing), DELETED, STANDING_STILL),
    "orphans deleted before the claim": Mutation(_orphans_before_the_claim, f"{DELETED}|{INCOMPLETE}", TAKING_OVER),
    "files deleted in doubt": Mutation(replaced(Completion, "acks_in_doubt", {}), DELETED, IN_DOUBT),
    "file of several tasks deleted with one of them": Mutation(
        replaced(Job, "_discard", _delete_all_at_once), f"{DELETED}|{INCOMPLETE}", SHARED_FILES
    ),
    "files of an aborted checkpoint deleted at once": Mutation(
        _files_of_the_aborted_at_once, f"{DELETED}|{INCOMPLETE}", ABORTED
    ),
    "file name used again": Mutation(
        replaced(publish, "new_merged_path", lambda: "shared/merged"), "is used for a second content"
    ),
    "collector without grace": Mutation(_no_grace, f"{DELETED}|{INCOMPLETE}", COLLECTED),
    "garbage as old as the clocks of machines say": Mutation(
        replaced(gc, "_newest_ms", _by_the_clock_of_drivers), f"{DELETED}|{INCOMPLETE}", GARBAGE_AND_CLOCKS
    ),
    "files kept for idle partitions": Mutation(
        replaced(requests, "is_rewrite_due", lambda wasted, size: False), "is kept since version", IDLE
    ),
}
"""Mistakes, by name."""
