"""Requests to a storage that run beside their caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Request(Generic[_T]):
    """A request that runs when its result is needed, or beside its caller once it is started.

    Args:
        call: the request.
    """

    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call
        self._results: list[_T] = []
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the request on another thread, whose log names the same query. Its error is kept for `result`."""
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(self.run,), name="spark-ckpt-request", daemon=True)
        self._thread.start()

    def run(self) -> None:
        """Runs the request here and now. Its error is kept for `result`."""
        try:
            self._results.append(self._call())
        except Exception as e:
            self._error = e

    def wait(self) -> None:
        """Waits until a request that was started has ended."""
        if self._thread is not None:
            self._thread.join()

    def result(self) -> _T:
        """Result of the request; raises its exception."""
        self.wait()
        if not self._results and self._error is None:
            self.run()
        if self._error is not None:
            raise self._error
        return self._results[0]
