"""Failover: a mirror becomes the location of the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.errors import DamagedCheckpointError, SparkCkptError
from spark_ckpt.location.errors import NoCheckpointError
from spark_ckpt.location.open_store import opened_store
from spark_ckpt.operations.mirror.errors import NotAMirrorError, SourceUnreachableError
from spark_ckpt.operations.mirror.following import FAILOVER, LocationMirror
from spark_ckpt.operations.mirror.note import MirrorNote
from spark_ckpt.progress import Progress
from spark_ckpt.recovery.rollback import claim_location
from spark_ckpt.recovery.verdict import verify_checkpoint
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class Failover:
    """A mirror that has become the location of the query.

    Args:
        location: the mirror.
        source: location of the query until then.
        is_source_fenced: whether the failover has claimed the source, so that no driver there completes a batch.
        reason: why it has not; None if it has.
        caught_up: number of checkpoints that it has copied from the source before.
        checkpoint: record of the checkpoint that the query continues from.
    """

    location: str
    source: str
    is_source_fenced: bool
    reason: str | None
    caught_up: int
    checkpoint: CheckpointRecord


def source_of(target: Storage) -> str:
    """Location of the query that a mirror follows, without credentials.

    Raises:
        NotAMirrorError: the location is no mirror.
        CheckpointError: its note is damaged.
        StorageError: it cannot be read.
    """
    return _note(target).source


def _note(target: Storage) -> MirrorNote:
    note = MirrorNote.read(target)
    if note is None:
        raise NotAMirrorError(target.location, "it has no note of what it mirrors. `spark-ckpt mirror` makes one")
    return note


def fail_over(
    target: Storage,
    source: Storage,
    *,
    settings: Mapping[str, str] | None = None,
    force: bool = False,
    clock: Clock | None = None,
    progress: Progress = lambda done, of: None,
) -> Failover:
    """Makes a mirror the location of its query: a start there continues with the same query id.

    First it claims the source, so that no driver there completes another batch, and copies what the mirror lacks. Then
    the mirror's newest checkpoint is read in full. A process that still follows the query is fenced by the claim of the
    mirror. If it is interrupted, run it again.

    Args:
        target: storage of the mirror.
        source: storage of the query's checkpoint location.
        settings: settings of the query that begin with `spark.sql.streaming.stateStore.ckpt.`; required if the source's
            completed checkpoints are in ZooKeeper.
        force: True to proceed if the source cannot be claimed. Then nothing can stop a driver that still runs there:
            its sink may get batches that the query repeats here.
        clock: source of time.
        progress: called while the checkpoint is read.

    Raises:
        NotAMirrorError: the location is no mirror, or one of another query.
        SourceUnreachableError: see `force`.
        NoCheckpointError: the mirror has no checkpoint yet.
        DamagedCheckpointError: its newest checkpoint is damaged.
        StorageError: the mirror cannot be read or written.
    """
    clock = clock or SystemClock()
    note = _note(target)
    reason = None
    try:
        with opened_store(source, settings, FAILOVER, clock) as (store, _):
            store.recover()
            claim_location(source, store)
    except SparkCkptError as e:
        if not force:
            raise SourceUnreachableError(target.location, note.source, str(e)) from e
        reason = str(e)
    mirror = LocationMirror.take_over(source, target, note, clock)
    try:
        caught_up = 0
        while reason is None and mirror.step() is not None:
            caught_up += 1
        if mirror.last is None:
            raise NoCheckpointError(target.location)
        verdict = verify_checkpoint(target, mirror.last, progress=progress)
        for damage in verdict.damages:
            way_out = f"Find an undamaged one with: spark-ckpt verify {target.location} --all"
            raise DamagedCheckpointError(damage.path, mirror.last.id, damage.reason, None, way_out)
        mirror.promote()
        return Failover(target.location, note.source, reason is None, reason, caught_up, mirror.last)
    finally:
        mirror.close()
