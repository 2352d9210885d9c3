"""Deletion of files in the background (Flink: `CheckpointsCleaner`)."""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from typing import TypeVar

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import LOG
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_Argument = TypeVar("_Argument")

_MAX_REMEMBERED = 100_000
_GATHER_SECONDS = 3.0
"""Seconds to collect files on slow storages: one request then deletes the files of several checkpoints."""

_TRIES = 3
_FIRST_PAUSE_SECONDS = 0.5


class Cleaner(ABC):
    """Deletion of unreferenced files.

    Each file is submitted once. Files that still exist after a few tries are left to the next claim. An error does not
    prevent the deletion of other files.
    """

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        self._storage = storage
        self._clock = clock or SystemClock()
        self._names: OrderedDict[str, None] = OrderedDict()
        # One thread submits and one deletes, so each writes a count of its own.
        self._submitted = self._handled = self._undeleted = 0

    @property
    def backlog(self) -> int:
        """Number of files that wait for their deletion."""
        return self._submitted - self._handled

    @property
    def undeleted(self) -> int:
        """Number of files that could not be deleted."""
        return self._undeleted

    @abstractmethod
    def submit(self, names: Iterable[str]) -> None:
        """Delete these files, now or later."""

    @abstractmethod
    def close(self, timeout: float) -> None:
        """Wait for at most `timeout` seconds until all submitted files are deleted."""

    def was_submitted(self, name: str) -> bool:
        """True if the file was submitted. A new reference to it is an error."""
        return name in self._names

    def _new(self, names: Iterable[str]) -> list[str]:
        new = [name for name in names if name not in self._names]
        self._names.update(dict.fromkeys(new))
        self._submitted += len(new)
        while len(self._names) > _MAX_REMEMBERED:
            self._names.popitem(last=False)
        return new

    def _delete(self, names: Sequence[str]) -> None:
        """Never raises."""
        pause = _FIRST_PAUSE_SECONDS
        for _ in range(1, _TRIES):
            if self._failure_of(self._delete_for_good, names) is None:
                break
            self._clock.sleep(pause)
            pause *= 2
        else:
            for name in names:  # a file that always fails must not prevent the deletion of others
                if (error := self._failure_of(self._delete_for_good, [name])) is not None:
                    self._undeleted += 1
                    _log.warning("cannot delete unreferenced file %s: %s", name, error)
        self._handled += len(names)
        directories = {name.rpartition("/")[0] for name in names}
        for directory in (name for name in directories if name.rpartition("/")[2].startswith("chk-")):
            if (error := self._failure_of(self._storage.remove_empty, directory)) is not None:
                _log.warning("cannot delete empty directory %s: %s", directory, error)

    def _delete_for_good(self, names: Sequence[str]) -> None:
        self._storage.sync_deletions(LOG)  # a power loss must not restore a record without its files
        self._storage.delete_all(names)

    @staticmethod
    def _failure_of(do: Callable[[_Argument], object], argument: _Argument) -> Exception | None:
        """Exception that the call raises; None on success."""
        try:
            do(argument)
        except Exception as e:
            return e
        return None


class ThreadCleaner(Cleaner):
    """Cleaner with a thread, which starts with the first file."""

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        super().__init__(storage, clock)
        self._queue: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def submit(self, names: Iterable[str]) -> None:
        """Delete these files soon."""
        if not (new := self._new(names)):
            return
        self._queue.put(new)
        if self._thread is None or not self._thread.is_alive():
            self._closing.clear()
            # In this context, so that the log names the same query.
            context = copy_context()
            self._thread = threading.Thread(
                target=context.run, args=(self._run,), name="spark-ckpt-cleaner", daemon=True
            )
            self._thread.start()

    def close(self, timeout: float) -> None:
        """Wait until the queue is empty."""
        if self._thread is not None:
            self._closing.set()
            self._queue.put(None)
            self._thread.join(timeout)
            self._thread = None

    def _run(self) -> None:
        is_open = True
        while is_open:
            submitted = [self._queue.get()]
            if self._storage.requests_are_slow:
                self._closing.wait(_GATHER_SECONDS)
            while not self._queue.empty():
                submitted.append(self._queue.get())
            is_open = None not in submitted
            if deleted := [name for names in submitted for name in names or ()]:
                self._delete(deleted)
