"""The files that the side process reads and writes through the driver: requests that go the other way."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from spark_ckpt.bridge.protocol import FILE, Message, parse_header
from spark_ckpt.storage.errors import DriverGoneError, HadoopError

_log = logging.getLogger(__name__)

KINDS: Mapping[str, type[OSError]] = {
    "missing": FileNotFoundError,
    "exists": FileExistsError,
    "denied": PermissionError,
}
"""Kinds of errors that Python has a class for; the others are `other`."""


class DriverFiles:
    """Asks the driver JVM for operations on Hadoop's file systems (docs/protocol.md, section 1.6). Thread-safe.

    Whoever asks waits, while the thread that reads messages hands in the answers: that thread must not ask.

    Args:
        send: takes a message to the driver; does not wait.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Message]] = {}
        self._next = 0
        self._gone = False

    def ask(
        self, operation: str, path: str, payload: bytes | memoryview = b"", **fields: object
    ) -> tuple[Mapping[str, Any], bytes | memoryview]:
        """One operation on one path; returns header and payload of the answer.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError: what Java's exceptions of that meaning say.
            HadoopError: any other exception of the file system.
            DriverGoneError: the driver has ended, and no answer will come.
        """
        answer: Future[Message] = Future()
        with self._lock:
            if self._gone:
                raise DriverGoneError(path)
            number, self._next = self._next, self._next + 1
            self._waiting[number] = answer
        self._send(Message(number, FILE, json.dumps({"operation": operation, "path": path, **fields}), b"", payload))
        try:
            reply = answer.result()
        except EOFError:
            raise DriverGoneError(path) from None
        header = parse_header(reply)
        if reply.kind == "error":
            failure = HadoopError(path, str(header["error"]), str(header["message"]))
            if (kind := KINDS.get(header["kind"])) is None:
                raise failure
            raise kind(str(failure))
        return header, reply.payload

    def answered(self, reply: Message) -> None:
        """Hands in an answer."""
        with self._lock:
            answer = self._waiting.pop(reply.id, None)
        if answer is None:
            _log.warning("the driver answers the file request %d, which was not made", reply.id)
        else:
            answer.set_result(reply)

    def close(self) -> None:
        """Fail pending and later requests: no more answers will come."""
        with self._lock:
            self._gone = True
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.set_exception(EOFError())
