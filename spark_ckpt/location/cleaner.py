"""Deletion of files in the background (Flink: `CheckpointsCleaner`)."""

from __future__ import annotations

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from spark_ckpt.clock import Clock, SystemClock
from spark_ckpt.completed import LOG
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)

_Given = TypeVar("_Given")

_MOST_REMEMBERED = 100_000
_GATHER_SECONDS = 3.0
"""How long files are waited for where a request takes long: one deletes the files of several checkpoints."""

_TRIES = 3
_FIRST_PAUSE_SECONDS = 0.5


class Cleaner(ABC):
    """Deletes files that nothing refers to any more.

    A file is handed over once; what cannot be deleted in a few tries is left behind for the next claim to find. No
    error keeps other files from being deleted.
    """

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        self._storage = storage
        self._clock = clock or SystemClock()
        self._taken: OrderedDict[str, None] = OrderedDict()

    @abstractmethod
    def submit(self, names: Iterable[str]) -> None:
        """Deletes these files, now or later."""

    @abstractmethod
    def close(self, timeout: float) -> None:
        """Waits until what was submitted is deleted, for at most `timeout` seconds."""

    def was_submitted(self, name: str) -> bool:
        """True if this file was handed over. Nothing may refer to it from then on."""
        return name in self._taken

    def _new(self, names: Iterable[str]) -> list[str]:
        new = [name for name in names if name not in self._taken]
        self._taken.update(dict.fromkeys(new))
        while len(self._taken) > _MOST_REMEMBERED:
            self._taken.popitem(last=False)
        return new

    def _delete(self, names: Sequence[str]) -> None:
        """Never raises."""
        pause = _FIRST_PAUSE_SECONDS
        for _ in range(1, _TRIES):
            if self._done(self._delete_for_good, names) is None:
                break
            self._clock.sleep(pause)
            pause *= 2
        else:
            for name in names:  # one that fails each time must not keep the others
                if (error := self._done(self._delete_for_good, [name])) is not None:
                    _log.warning("a file is left behind that nothing refers to: %s: %s", name, error)
        directories = {name.rpartition("/")[0] for name in names}
        for directory in (name for name in directories if name.rpartition("/")[2].startswith("chk-")):
            if (error := self._done(self._storage.remove_empty, directory)) is not None:
                _log.warning("an empty directory is left behind: %s: %s", directory, error)

    def _delete_for_good(self, names: Sequence[str]) -> None:
        self._storage.sync_deletions(LOG)  # a power loss must not bring a record back whose files are gone
        self._storage.delete_all(names)

    @staticmethod
    def _done(do: Callable[[_Given], object], given: _Given) -> Exception | None:
        """Does it, and returns what it raises."""
        try:
            do(given)
        except Exception as e:
            return e
        return None


class ThreadCleaner(Cleaner):
    """Deletes on a thread of its own, which lives from the first file on."""

    def __init__(self, storage: Storage, clock: Clock | None = None) -> None:
        super().__init__(storage, clock)
        self._queue: queue.SimpleQueue[list[str] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def submit(self, names: Iterable[str]) -> None:
        """Deletes these files soon."""
        if not (new := self._new(names)):
            return
        self._queue.put(new)
        if self._thread is None or not self._thread.is_alive():
            self._closing.clear()
            self._thread = threading.Thread(target=self._run, name="spark-ckpt-cleaner", daemon=True)
            self._thread.start()

    def close(self, timeout: float) -> None:
        """Waits until the queue is empty."""
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
