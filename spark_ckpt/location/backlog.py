"""Work that a start defers: reading older checkpoints, and deleting orphans of crashed drivers.

A batch needs the newest checkpoint only, and there may be hundreds. Until all are read no file is deleted, since each
may be one that an older checkpoint needs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from spark_ckpt.checkpoint.layout import CKPT, SHARED, checkpoint_of_directory, in_location
from spark_ckpt.checkpoint.load import files_named
from spark_ckpt.checkpoint.registry import SharedStateRegistry
from spark_ckpt.completed import CheckpointRecord, CompletedCheckpointStore
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.location.cleaner import Cleaner
from spark_ckpt.location.orphans import Leftover, list_state, select_orphans
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_READ_AT_ONCE = 64
"""Checkpoints whose `_metadata` are in memory at the same time."""

_FEW = 4
"""So many checkpoints are read at once on a local disk: a thread is not worth it."""


class Backlog:
    """Reads on a thread of its own; what follows from it is done on the caller's.

    Args:
        storage: of the checkpoint location.
        store: of its completed checkpoints, claimed.
        registry: knows of the checkpoints to read that they are not read.
        cleaner: deletes orphans.
        older: the checkpoints to read.
        deletes_orphans: whether this driver may delete what no checkpoint refers to.
    """

    def __init__(
        self,
        storage: Storage,
        store: CompletedCheckpointStore,
        registry: SharedStateRegistry,
        cleaner: Cleaner,
        older: Sequence[CheckpointRecord],
        deletes_orphans: bool,
    ) -> None:
        self._storage = storage
        self._store = store
        self._registry = registry
        self._cleaner = cleaner
        self._older = older
        self._claimed = store.counter.get()
        self._there_before = self._list_before() if deletes_orphans else None
        self._files: dict[int, set[str]] = {}
        self._there: list[Leftover] = []
        self._is_read = threading.Event()
        self._is_closing = False
        self.is_done = False
        """Whether all of it is done, so that checkpoints can be dropped."""

    def start(self, in_background: Callable[[Callable[[], None]], None]) -> None:
        """Begins, on another thread if that saves time."""
        if self._storage.requests_are_slow or len(self._older) > _FEW:
            in_background(self._read)
        else:
            self._read()
            self.settle()

    def settle(self, timeout: float = 0.0) -> None:
        """Makes use of what was read, if that is all; waits for it for at most `timeout` seconds.

        Raises:
            FencedError: another driver has claimed since, and what was listed may be its own.
            StorageError: the storage does not say who the owner is. The orphans stay for the next start.
        """
        if self.is_done or not self._is_read.wait(timeout):
            return
        self.is_done = True
        for checkpoint_id, files in self._files.items():
            self._registry.found(checkpoint_id, files)
        self._files.clear()
        if self._there_before is not None:
            self._delete_orphans()

    def close(self, timeout: float) -> None:
        """Ends the reading, if it is not at its end within `timeout` seconds. Never raises."""
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
                        _log.warning("a retained checkpoint cannot be read: %s", found)
                    else:
                        self._files[record.id] = found
            if self._there_before is not None:
                self._there = [leftover for leftover in list_state(self._storage) if self._is_earlier(leftover)]
        except SparkCkptError as e:
            _log.warning("%s: orphans stay for now: %s", self._storage.location, e)
        finally:
            self._is_read.set()

    def _list_before(self) -> set[str]:
        """Files that this run has not written, where it may write: state files, and what earlier drivers have
        left in directories of checkpoints that are to come. Of directories before its claim it writes into none."""
        there = {f"{SHARED}/{file.name}" for file in self._storage.list(in_location(SHARED))}
        for entry in self._storage.list(CKPT):
            if entry.is_directory and (checkpoint_of_directory(entry.name) or 0) >= self._claimed:
                files = self._storage.list(in_location(entry.name))
                there |= {f"{entry.name}/{file.name}" for file in files} or {entry.name}
        return there

    def _is_earlier(self, leftover: Leftover) -> bool:
        """True if neither a task nor a checkpoint of this run can have written a file."""
        assert self._there_before is not None
        directory = leftover.path if leftover.is_directory else leftover.path.rpartition("/")[0]
        checkpoint_id = checkpoint_of_directory(directory)
        return leftover.path in self._there_before or (checkpoint_id is not None and checkpoint_id < self._claimed)

    def _delete_orphans(self) -> None:
        """Deletes what crashed drivers left: state files and `_metadata` that no record refers to.

        What a retained checkpoint may need that cannot be read stays until that one is dropped.
        """
        used = self._registry.files() | {record.metadata.path for record in self._store.all()}
        orphans = select_orphans(self._there, used)
        self._there = []
        if not orphans:
            return
        self._store.check_owner()
        files = [orphan.path for orphan in orphans if not orphan.is_directory]
        if self._registry.is_whole:
            if files:
                _log.info("%s: %d files that no checkpoint refers to are deleted", self._storage.location, len(files))
            self._cleaner.submit(in_location(path) for path in files)
        else:
            _log.warning(
                "%s: %d orphans stay as long as a checkpoint cannot be read", self._storage.location, len(files)
            )
            self._registry.hold(files)
        for orphan in orphans:
            if orphan.is_directory:
                self._storage.remove_empty(in_location(orphan.path))


def in_thread(work: Callable[[], None]) -> None:
    """Does something on a thread of its own."""
    threading.Thread(target=work, name="spark-ckpt-backlog", daemon=True).start()
