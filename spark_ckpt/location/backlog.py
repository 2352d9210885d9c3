"""Deferred work of a start: reading older and tagged checkpoints, and deleting orphans of crashed drivers.

A batch needs only the newest of possibly hundreds of checkpoints. No file is deleted until all are read, because an
older checkpoint may refer to it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import TypeAlias

from spark_ckpt.checkpoint.layout import CKPT, SHARED, checkpoint_of_directory, in_location
from spark_ckpt.checkpoint.load import files_named, list_shared
from spark_ckpt.checkpoint.registry import SharedStateRegistry
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.cleaner import Cleaner
from spark_ckpt.location.orphans import Leftover, list_state, select_orphans
from spark_ckpt.location.tags import Tags
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_Tagged: TypeAlias = list[tuple[CheckpointRecord, "set[str] | None"]]

_READ_AT_ONCE = 64
"""Maximum number of checkpoints whose `_metadata` is in memory at once."""

_FEW = 4
"""Number of checkpoints on a local disk that are read without starting a thread."""


class Backlog:
    """Background reader of older checkpoints. Results take effect on the caller's thread.

    Args:
        storage: storage of the checkpoint location.
        store: its completed checkpoints, claimed.
        registry: registry with the `older` checkpoints as unread.
        cleaner: deletes orphans.
        older: checkpoints to read.
        there_before: `files_before` the run, after the claim; None if this driver may not delete orphans.
    """

    def __init__(
        self,
        storage: Storage,
        store: CompletedCheckpointStore,
        registry: SharedStateRegistry,
        cleaner: Cleaner,
        older: Sequence[CheckpointRecord],
        there_before: set[str] | None,
    ) -> None:
        self._storage = storage
        self._store = store
        self._registry = registry
        self._cleaner = cleaner
        self._older = older
        self._claimed = store.counter.get()
        self._logged = {record.id for record in store.all()}
        self._there_before = there_before
        self._files: dict[int, set[str]] = {}
        self._found_tagged: _Tagged | None = None
        self._tagged: dict[int, CheckpointRecord] | None = None
        self._there: list[Leftover] = []
        self._is_read = threading.Event()
        self._is_closing = False
        self.is_done = False
        """True once all is read, so that checkpoints can be dropped."""

    def start(self, in_background: Callable[[Callable[[], None]], None]) -> None:
        """Start reading, on another thread if that saves time."""
        if self._storage.requests_are_slow or len(self._older) > _FEW:
            in_background(self._read)
        else:
            self._read()
            self.settle()

    def settle(self, timeout: float = 0.0) -> None:
        """Apply the results once everything is read. Waits for at most `timeout` seconds.

        Raises:
            FencedError: another driver has claimed since; the listed files may be its own.
            StorageError: the owner cannot be determined. The orphans stay until the next start.
        """
        if self.is_done or not self._is_read.wait(timeout):
            return
        self.is_done = True
        for checkpoint_id, files in self._files.items():
            self._registry.found(checkpoint_id, files)
        self._files.clear()
        if self._found_tagged is not None:
            self._register_tagged(self._found_tagged)
            self._found_tagged = None
        if self._there_before is not None:
            self._delete_orphans()

    def tagged(self) -> dict[int, CheckpointRecord]:
        """The checkpoints that only tags retain, by id. The caller keeps it up to date. Call it once all is read.

        Raises:
            DamagedRecordError: a tag is damaged.
            StorageError: the tags cannot be read.
        """
        if self._tagged is None:
            self._register_tagged(self._read_tagged())
        assert self._tagged is not None
        return self._tagged

    def _register_tagged(self, found: _Tagged) -> None:
        self._tagged = {record.id: record for record, _ in found}
        for record, files in found:
            if files is None:
                self._registry.register_unread(record.id)
            else:
                self._registry.register(record.id, files)

    def _read_tagged(self) -> _Tagged:
        """The checkpoints that have a tag and no record, with the files that they refer to; None if unreadable."""
        tagged = [record for i, record in Tags(self._storage).records().items() if i not in self._logged]
        found: _Tagged = []
        for record, files in files_named(self._storage, tagged) if tagged else ():
            if isinstance(files, SparkCkptError):
                _log.warning("cannot read a tagged checkpoint: %s", files)
            found.append((record, None if isinstance(files, SparkCkptError) else files))
        return found

    def close(self, timeout: float) -> None:
        """Stop reading after at most `timeout` seconds. Never raises."""
        try:
            self.settle(timeout)
        except SparkCkptError as e:
            _log.warning("%s: orphans stay for now: %s", self._storage.location, e)
        self._is_closing = True

    def _read(self) -> None:
        try:
            for first in range(0, len(self._older), _READ_AT_ONCE):
                if self._is_closing:
                    return
                for record, found in files_named(self._storage, self._older[first : first + _READ_AT_ONCE]):
                    if isinstance(found, SparkCkptError):
                        _log.warning("cannot read a retained checkpoint: %s", found)
                    else:
                        self._files[record.id] = found
            self._found_tagged = self._read_tagged()
            if self._there_before is not None:
                self._there = [leftover for leftover in list_state(self._storage) if self._is_earlier(leftover)]
        except SparkCkptError as e:
            _log.warning("%s: orphans stay for now: %s", self._storage.location, e)
        finally:
            self._is_read.set()

    def _is_earlier(self, leftover: Leftover) -> bool:
        """True if no task or checkpoint of this run can have written the file."""
        assert self._there_before is not None
        directory = leftover.path if leftover.is_directory else leftover.path.rpartition("/")[0]
        checkpoint_id = checkpoint_of_directory(directory)
        return leftover.path in self._there_before or (checkpoint_id is not None and checkpoint_id < self._claimed)

    def _delete_orphans(self) -> None:
        """Delete leftovers of crashed drivers: state files and `_metadata` without a record.

        While a retained checkpoint is unreadable, all files that it may refer to stay.
        """
        try:
            retained = (*self._store.all(), *self.tagged().values())
        except SparkCkptError as e:
            _log.warning("%s: orphans stay for now: %s", self._storage.location, e)
            return
        used = self._registry.files() | {record.metadata.path for record in retained}
        orphans = select_orphans(self._there, used)
        self._there = []
        if not orphans:
            return
        self._store.check_owner()
        files = [orphan.path for orphan in orphans if not orphan.is_directory]
        if self._registry.is_whole:
            if files:
                _log.info("%s: deleting %d orphaned files", self._storage.location, len(files))
            self._cleaner.submit(in_location(path) for path in files)
        else:
            _log.warning(
                "%s: keeping %d orphaned files until every checkpoint is readable or dropped",
                self._storage.location,
                len(files),
            )
            self._registry.hold(files)
        for orphan in orphans:
            if orphan.is_directory:
                self._storage.remove_empty(in_location(orphan.path))


def files_before(storage: Storage, claimed: int) -> set[str]:
    """Files older than this run in directories that it may write to: state files, and leftovers of earlier drivers in
    directories of future checkpoints. It never writes to directories of checkpoints before its claim.

    Args:
        storage: storage of the checkpoint location.
        claimed: next id after the claim.

    Raises:
        StorageError: the location cannot be listed.
    """
    shared = list_shared(storage)
    there = set()
    for entry in storage.list(CKPT):
        if entry.is_directory and (checkpoint_of_directory(entry.name) or 0) >= claimed:
            files = storage.list(in_location(entry.name))
            there |= {f"{entry.name}/{file.name}" for file in files} or {entry.name}
    return there | {f"{SHARED}/{file.name}" for file in shared.result()}


def in_thread(work: Callable[[], None]) -> None:
    """Run `work` on a new daemon thread, whose log names the same query."""
    threading.Thread(target=copy_context().run, args=(work,), name="spark-ckpt-backlog", daemon=True).start()
