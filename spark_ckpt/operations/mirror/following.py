"""A mirror that follows a running query: each checkpoint that it has is whole, whenever it is killed.

The mirror process owns the mirror as a driver owns its location: it claims it, and each checkpoint gets the next id of
the mirror's own log. So a query that starts there, or a failover, fences the process like any earlier driver.

Files of a checkpoint appear in this order: state files, `_metadata`, Spark's files, entries of `offsets`, the record,
the entry of `commits`. Without the last one, Spark repeats the batch with the same input, as after a crash between the
two. Deletions come last, in the order of the coordinator: records, then the files that no checkpoint needs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from spark_ckpt.checkpoint.layout import SHARED, in_location, is_temporary
from spark_ckpt.checkpoint.load import read_checkpoint
from spark_ckpt.checkpoint.publish import Publisher
from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import (
    LOG,
    CheckpointRecord,
    FilesystemCompletedCheckpointStore,
    JobStatus,
    MetadataReference,
    Owner,
    operation_of,
)
from spark_ckpt.errors import DamagedCheckpointError, StateFileNotFoundError
from spark_ckpt.location.errors import (
    CheckpointNotFoundError,
    CheckpointsMissingError,
    NoCheckpointError,
    NotCommittedError,
    TagNotFoundError,
)
from spark_ckpt.location.listing import is_retained
from spark_ckpt.location.open_store import owner_of_command
from spark_ckpt.location.orphans import list_state, select_orphans
from spark_ckpt.location.snapshot import find_record, read_snapshot
from spark_ckpt.location.tags import Tags
from spark_ckpt.metadata import CheckpointMetadata, dumps
from spark_ckpt.operations.copy import copy_spark_files, files_of_sources, log_entries, state_files
from spark_ckpt.operations.errors import TargetNotEmptyError
from spark_ckpt.operations.mirror.errors import MirrorDivergedError, NotAMirrorError
from spark_ckpt.operations.mirror.note import MirrorNote
from spark_ckpt.operations.mirror.throttle import Throttle
from spark_ckpt.operations.restore import moved_files
from spark_ckpt.operations.tagging import tag_checkpoint, untag_checkpoint
from spark_ckpt.redaction import redacted
from spark_ckpt.spark_files.entries import OffsetEntry
from spark_ckpt.spark_files.logs import QUERY, STATE, BatchLog, SparkLog, entry_name
from spark_ckpt.spark_files.rollbacks import EVOLVE, ROLLBACK, Rollbacks, read_marker
from spark_ckpt.storage import Storage, copy_file, files_below

FOLLOWING, FAILOVER = "mirror", "failover"
"""Operations that own a mirror."""


@dataclass(frozen=True, slots=True)
class MirroredCheckpoint:
    """A checkpoint that has become complete in a mirror.

    Args:
        source_id: its id at the source; None if it was there already.
        checkpoint: its record in the mirror, where ids count on their own.
        files: number of files copied for it.
        size: their bytes.
        lag_ms: milliseconds since it had completed at the source.
        is_held: whether a tag kept it at the source during the copy.
    """

    source_id: int | None
    checkpoint: CheckpointRecord
    files: int
    size: int
    lag_ms: int
    is_held: bool


class _RolledBackError(Exception):
    """The logs of the source have changed during a copy."""


class LocationMirror:
    """A mirror that this process owns. Make it with `open`.

    Args:
        source: storage of the query's checkpoint location.
        target: storage of the mirror.
        store: completed checkpoints of the mirror, claimed.
        owner: claimant.
        note: note in the mirror.
        retained: number of checkpoints that the mirror keeps.
        throttle: bounds the rate of copies.
        clock: source of time.
    """

    def __init__(
        self,
        source: Storage,
        target: Storage,
        store: FilesystemCompletedCheckpointStore,
        owner: Owner,
        note: MirrorNote,
        retained: int,
        throttle: Throttle,
        clock: Clock,
    ) -> None:
        self._source = source
        self._target = target
        self._store = store
        self._owner = owner
        self._note = note
        self._retained = retained
        self._throttle = throttle
        self._clock = clock
        self._there = set(_names_in(target))
        self._files: dict[int, set[str]] = {}
        """State files of the mirror's checkpoints by id."""
        self._has_dropped = False
        """Whether what a killed process may have left is gone."""
        self._copied = self._size = 0
        self._last = _newest_of_mirror(target)

    @classmethod
    def open(
        cls,
        source: Storage,
        target: Storage,
        *,
        retained: int = 2,
        bytes_per_second: int | None = None,
        clock: Clock | None = None,
    ) -> LocationMirror:
        """Claims a mirror: a new one in an empty directory, or one that has followed this query before.

        Args:
            source: storage of the query's checkpoint location; the query may be running.
            target: directory of the mirror.
            retained: number of checkpoints that the mirror keeps.
            bytes_per_second: average rate of copies; None for no bound.
            clock: source of time.

        Raises:
            TargetNotEmptyError: the directory has other files.
            NotAMirrorError: it is a mirror of another query, or a query has started there.
            StateFileNotFoundError: the source has no query yet.
            SparkLogFormatError: the file with the query's id is damaged.
            StorageError: source or target do not answer.
        """
        clock = clock or SystemClock()
        query_id = SparkLog(source).query_id()
        throttle = Throttle(bytes_per_second, clock)
        note = MirrorNote.read(target)
        if note is None:
            if not _is_empty(target):
                raise TargetNotEmptyError(target.location)
            note = MirrorNote(redacted(source.location), Rollbacks.of(source).epoch)
            note.write(target)
        _check_follows(target, note)
        if not target.exists(QUERY):
            copy_file(source, QUERY, target, QUERY)
        elif SparkLog(target).query_id() != query_id:
            raise NotAMirrorError(target.location, f"it mirrors another query, that of {note.source}")
        mirror = cls(source, target, *_claim(target, query_id, FOLLOWING, clock), note, retained, throttle, clock)
        with contextlib.suppress(TagNotFoundError):
            untag_checkpoint(source, note.tag)  # left by a killed process
        return mirror

    @classmethod
    def take_over(cls, source: Storage, target: Storage, note: MirrorNote, clock: Clock) -> LocationMirror:
        """Claims a mirror for a failover, whether the source answers or not. It drops no checkpoint.

        Args:
            source: storage of the query's checkpoint location.
            target: storage of the mirror.
            note: note in the mirror.
            clock: source of time.

        Raises:
            NotAMirrorError: a query has started there.
            SparkLogFormatError: the file with the query's id is damaged.
            StorageError: the mirror does not answer.
        """
        _check_follows(target, note)
        claimed = _claim(target, SparkLog(target).query_id(), FAILOVER, clock)
        return cls(source, target, *claimed, note, sys.maxsize, Throttle(None, clock), clock)

    @property
    def last(self) -> CheckpointRecord | None:
        """Record of the newest checkpoint whose batch the mirror has as committed; None before the first."""
        return self._last

    def step(self) -> MirroredCheckpoint | None:
        """Copies the newest checkpoint whose batch Spark has committed.

        If newer checkpoints subsume it during the copy, the next copy keeps its checkpoint by a tag.

        Returns:
            The checkpoint; None if there is nothing new, or if the source is being changed.

        Raises:
            MirrorDivergedError: the query went back or was changed.
            FencedError: a query has started on the mirror, or a failover has begun.
            DamagedCheckpointError: the checkpoint at the source is damaged.
            TagRefusedError: the source has no log of completed checkpoints.
            SparkCkptError, StorageError: source or target do not answer. The next step tries again.
        """
        self._store.settle()
        if not self._notes_changes():
            return None
        for is_held in (False, True):
            record = _newest_committed(self._source) if self._is_behind() else None
            if record is None or (self._last is not None and record.batch_id <= self._last.batch_id):
                self._copy_running_batch()
                self._drop_older()
                return None
            try:
                with self._held(record) if is_held else contextlib.nullcontext():
                    return self._mirror(record, is_held)
            except _RolledBackError:
                return None
            except CheckpointNotFoundError:
                continue
            except (DamagedCheckpointError, StateFileNotFoundError):
                if is_held and is_retained(self._source, record):
                    raise
        return None

    def promote(self) -> None:
        """Notes that a query may start here: the mirror follows no more.

        Raises:
            FencedError: a query has started here.
            StorageError: the note cannot be written.
        """
        self._store.check_owner()
        self._note = replace(self._note, promoted_ms=self._clock.now_ms())
        self._note.write(self._target)

    def close(self) -> None:
        """Ends the ownership. Its claim stays, as that of a driver."""
        self._store.shutdown(JobStatus.SUSPENDED)

    def _is_behind(self) -> bool:
        """True if Spark has committed a batch that the mirror lacks. One listing, where the log takes many reads."""
        committed = SparkLog(self._source).batches(BatchLog.COMMITS)
        return bool(committed) and (self._last is None or committed[-1] > self._last.batch_id)

    # ---- changes at the source ---------------------------------------------------------------------------------------

    def _notes_changes(self) -> bool:
        """Looks at the rollbacks and changes at the source.

        Returns:
            False while one is unfinished.
        """
        found = Rollbacks.of(self._source)
        if found.unfinished:
            return False
        for epoch in range(self._note.log_epoch + 1, found.epoch + 1):
            change = read_marker(self._source, epoch)
            if self._last is None:
                continue
            if change.operation == ROLLBACK and change.batch_id < self._last.batch_id:
                here = f"the mirror has batch {self._last.batch_id}"
                raise self._diverged(f"it was rolled back to batch {change.batch_id}, and {here}")
            if change.operation == EVOLVE:
                raise self._diverged(f"the query was changed by an evolution after batch {change.batch_id}")
        if found.epoch > self._note.log_epoch:
            self._note = replace(self._note, log_epoch=found.epoch)
            self._note.write(self._target)
        return True

    def _diverged(self, reason: str) -> MirrorDivergedError:
        return MirrorDivergedError(self._target.location, self._note.source, reason)

    @contextmanager
    def _held(self, record: CheckpointRecord) -> Iterator[None]:
        """Keeps a checkpoint at the source by a tag."""
        tag_checkpoint(self._source, record.id, self._note.tag)
        try:
            yield
        finally:
            untag_checkpoint(self._source, self._note.tag)

    # ---- copies ------------------------------------------------------------------------------------------------------

    def _mirror(self, record: CheckpointRecord, is_held: bool) -> MirroredCheckpoint:
        self._copied = self._size = 0
        snapshot = read_snapshot(self._source, record)
        state = snapshot.state()
        assert state.batch is not None
        for name in state_files(state.table):
            self._copy(name)
        reference = self._write_metadata(snapshot.metadata)
        for name, data in moved_files(self._source, self._target, snapshot).items():
            self._rewrite(name, data)
        copy_spark_files(self._source, self._target, state.batch, self._copy)
        *offsets, commit = log_entries(record.batch_id)
        for name in offsets:
            self._copy(name)
        if Rollbacks.of(self._source).epoch != self._note.log_epoch:
            raise _RolledBackError
        generation, owner = self._store.generation, self._owner
        done = self._store.add(
            lambda record_id, attempt: replace(
                record,
                id=record_id,
                generation=generation,
                owner=owner,
                attempt=attempt,
                metadata=reference,
                evolved=None,  # the mirror has no checkpoint from before
            )
        )
        self._files[done.id] = state.files()
        self._copy(commit)
        self._last = done
        self._copy_running_batch()
        lag_ms = max(0, self._clock.now_ms() - record.timestamp_ms)
        self._drop_older()
        return MirroredCheckpoint(record.id, done, self._copied, self._size, lag_ms, is_held)

    def _copy(self, name: str, source: Storage | None = None) -> None:
        """Copies a file that the mirror lacks: a name never gets new content, except for those of `_rewrite`."""
        if name in self._there:
            return
        size = copy_file(source or self._source, name, self._target, name)
        self._there.add(name)
        self._count(size)

    def _rewrite(self, name: str, data: bytes) -> None:
        if name not in self._there:
            self._target.write_atomic(name, data)
            self._there.add(name)
            self._count(len(data))

    def _count(self, size: int) -> None:
        self._copied += 1
        self._size += size
        self._throttle.took(size)

    def _write_metadata(self, metadata: CheckpointMetadata) -> MetadataReference:
        """Writes `_metadata` under the next id of the mirror."""
        checkpoint_id = self._store.counter.get()
        data = dumps(replace(metadata, checkpoint_id=checkpoint_id), metadata.version)
        reference = Publisher(self._target, self._store, self._owner).create_metadata(checkpoint_id, data)
        self._count(len(data))
        return reference

    def _copy_running_batch(self) -> None:
        """Copies the offsets of the batch that runs now, so that a failover repeats it with the same input."""
        if self._last is not None:
            batch_id = self._last.batch_id
            with contextlib.suppress(StateFileNotFoundError):
                if (name := entry_name(BatchLog.OFFSETS, batch_id + 1)) not in self._there:
                    data = self._source.read(name)
                    self._follow_rescale(batch_id, OffsetEntry.decode(data, self._source.describe(name)))
                    self._rewrite(name, data)

    def _follow_rescale(self, batch_id: int, begun: OffsetEntry) -> None:
        """Copies the commit of a batch once more if a rescale has added state ids since, before the next batch."""
        target = SparkLog(self._target)
        if begun.shuffle_partitions not in (None, target.offsets(batch_id).shuffle_partitions):
            target.replace_commit(batch_id, SparkLog(self._source).commit(batch_id))

    # ---- deletions ---------------------------------------------------------------------------------------------------

    def _drop_older(self) -> None:
        """Drops checkpoints beyond the retained ones, and what only they need."""
        records = self._store.all()
        old, kept = records[: -self._retained], records[-self._retained :]
        if not kept or (not old and self._has_dropped):
            return
        # Listed before the ownership is proven: files of a query that starts here now are not among them.
        there = list_state(self._target)
        self._store.check_owner()
        self._store.subsume(*old)
        retained = [*kept, *Tags(self._target).records().values()]
        used = {path for record in retained for path in (record.metadata.path, *self._files_of(record))}
        orphans = select_orphans(there, used)
        unused = [in_location(orphan.path) for orphan in orphans if not orphan.is_directory]
        unused += self._old_entries(kept[0].batch_id)
        self._store.check_owner()
        self._target.sync_deletions(LOG)  # a power loss must not bring back a record without its files
        self._target.delete_all(unused)
        self._there.difference_update(unused)
        for directory in {orphan.path.partition("/")[0] for orphan in orphans} - {SHARED}:
            self._target.remove_empty(in_location(directory))
        for record in old:
            self._files.pop(record.id, None)
        self._has_dropped = True

    def _files_of(self, record: CheckpointRecord) -> set[str]:
        if record.id not in self._files:
            self._files[record.id] = read_checkpoint(self._target, record).files()
        return self._files[record.id]

    def _old_entries(self, oldest: int) -> list[str]:
        """Entries of Spark's logs that no start needs any more: before a batch, and in `sources` those that the source
        lacks."""
        log = SparkLog(self._target)
        entries = [
            entry_name(kind, batch)
            for kind, keeps in ((BatchLog.OFFSETS, oldest - 1), (BatchLog.COMMITS, oldest))
            for batch in log.batches(kind)
            if batch < keeps
        ]
        there = set(files_of_sources(self._source))
        return [*entries, *(name for name in files_of_sources(self._target) if name not in there)]


def _newest_committed(storage: Storage) -> CheckpointRecord | None:
    """The newest checkpoint whose batch Spark has committed."""
    try:
        return find_record(storage, None)
    except (NoCheckpointError, NotCommittedError):
        return None


def _newest_of_mirror(target: Storage) -> CheckpointRecord | None:
    """The newest one in a mirror, whose first copy may have been killed before there was a record."""
    try:
        return _newest_committed(target)
    except CheckpointsMissingError:
        return None


def _is_empty(target: Storage) -> bool:
    """True if a directory has no files. A killed process may have left a temporary one of the first."""
    return all(is_temporary(name.rpartition("/")[2]) for name in files_below(target, "", hidden=True))


def _names_in(target: Storage) -> Iterable[str]:
    """Files of a mirror that never get new content."""
    for directory in (in_location(SHARED), *(log.value for log in BatchLog)):
        yield from files_below(target, directory)
    yield from files_of_sources(target)
    yield from files_below(target, STATE)


def _claim(
    target: Storage, query_id: str, operation: str, clock: Clock
) -> tuple[FilesystemCompletedCheckpointStore, Owner]:
    owner = owner_of_command(operation, query_id)
    store = FilesystemCompletedCheckpointStore(target, owner, clock=clock)
    store.recover()
    _check_has_no_query(target, store)
    store.claim()
    return store, owner


def _check_follows(target: Storage, note: MirrorNote) -> None:
    if note.promoted_ms is not None:
        reason = "a failover has made it the location of the query. Begin a new mirror in another directory"
        raise NotAMirrorError(target.location, reason)


def _check_has_no_query(target: Storage, store: FilesystemCompletedCheckpointStore) -> None:
    """Checks that mirrors have written all records."""
    owners = [claim.owner for claim in store.claims()] + [record.owner for record in store.all()]
    for owner in owners:
        if operation_of(owner.run_id) not in {FOLLOWING, FAILOVER}:
            reason = f"a query has started there, as {owner}. Begin a new mirror in another directory"
            raise NotAMirrorError(target.location, reason)
