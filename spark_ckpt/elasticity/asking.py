"""One request at a time for another number of partitions of a running query."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from spark_ckpt.clock import Clock
from spark_ckpt.location.rescale_request import (
    RescaleAnswer,
    RescaleRequest,
    create_request,
    delete_request,
    read_again,
    read_request,
)
from spark_ckpt.storage import Storage

_LOOK_SECONDS, _SLOW_LOOK_SECONDS = 0.5, 5.0
"""Pauses between two looks for an answer; the second where requests to the storage cost money. A command that waits to
ask takes answers for abandoned after twice that time."""

_ABANDONED_MS = 60_000
"""Age of an answered request whose asker has not deleted it: it has died."""

GONE = RescaleAnswer(refused="the request is gone: it could not be created, or someone has deleted it")
"""Stands for the answer of a request that is not there."""


class Asking:
    """Requests of one process to the driver of a query, which may be itself.

    Args:
        open_storage: opens the storage of the checkpoint location, at the first request.
        clock: source of time.
    """

    def __init__(self, open_storage: Callable[[], Storage], clock: Clock) -> None:
        self._open_storage = open_storage
        self._clock = clock
        self._pending: RescaleRequest | None = None
        self._look_due = 0.0

    @cached_property
    def _storage(self) -> Storage:
        return self._open_storage()

    @property
    def is_pending(self) -> bool:
        """True for a request without an answer."""
        return self._pending is not None

    @property
    def age_ms(self) -> int:
        """Age of the pending request; 0 without one."""
        return 0 if self._pending is None else self._clock.now_ms() - self._pending.asked_ms

    def ask(self, partitions: int) -> bool:
        """Makes a request; False if there is one of another process.

        Raises:
            SparkCkptError: the storage cannot be opened. A request whose creation has failed may exist, and is pending.
        """
        storage, request = self._storage, RescaleRequest(partitions, self._clock.now_ms())
        self._pending = request
        if create_request(storage, request) or (self._has_deleted_abandoned() and create_request(storage, request)):
            return True
        self._pending = None
        return False

    def _has_deleted_abandoned(self) -> bool:
        there = read_request(self._storage)
        if there is not None and (there.answer is None or self._clock.now_ms() - there.asked_ms < _ABANDONED_MS):
            return False
        delete_request(self._storage)
        return True

    def look(self) -> RescaleAnswer | None:
        """The answer to the pending request; None if it is too early, `GONE` if there never will be one. Deletes the
        request with its answer.

        Raises:
            SparkCkptError: the request cannot be read or deleted.
        """
        now = self._clock.monotonic()
        if self._pending is None or now < self._look_due:
            return None
        self._look_due = now + (_SLOW_LOOK_SECONDS if self._storage.requests_are_slow else _LOOK_SECONDS)
        there = read_again(self._storage, self._pending)
        if there is None:
            self._pending = None
            return GONE
        if there.answer is not None:
            delete_request(self._storage)
            self._pending = None
        return there.answer

    def withdraw(self) -> RescaleAnswer | None:
        """Deletes the pending request; returns its answer if it has one after all.

        Raises:
            SparkCkptError: it cannot be read or deleted.
        """
        self._look_due = 0.0
        try:
            answer = self.look()
            if self._pending is not None:
                delete_request(self._storage)
            return answer
        finally:
            self._pending = None
