"""Files that the side process reads and writes through the driver, by requests in the opposite direction."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from spark_ckpt.bridge.codec import fields_of
from spark_ckpt.bridge.protocol import FILE, Message
from spark_ckpt.storage.errors import DriverGoneError
from spark_ckpt.storage.hadoop import failure_of

_log = logging.getLogger(__name__)


class DriverFiles:
    """Client for operations on Hadoop's file systems in the driver JVM (docs/protocol.md, section 1.6). Thread-safe.

    A request blocks its thread until the reader thread delivers the answer, so the reader thread must send none.

    Args:
        send: sends a message to the driver without blocking.
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
        """Executes one operation on one path.

        Returns:
            Header and payload of the answer.

        Raises:
            FileNotFoundError, FileExistsError, PermissionError: Java raised the corresponding exception.
            HadoopError: the file system raised any other exception.
            DriverGoneError: the driver has ended, and no answer will come.
        """
        answer: Future[Message] = Future()
        with self._lock:
            if self._gone:
                raise DriverGoneError(path)
            number, self._next = self._next, self._next + 1
            self._waiting[number] = answer
        header = json.dumps({"operation": operation, "path": path, **fields}).encode()
        self._send(Message(number, FILE, "", header, b"", payload))
        try:
            reply = answer.result()
        except EOFError:
            raise DriverGoneError(path) from None
        answered = fields_of(reply)
        if reply.kind == "error":
            raise failure_of(path, answered)
        return answered, reply.payload

    def answered(self, reply: Message) -> None:
        """Delivers an answer to the waiting thread."""
        with self._lock:
            answer = self._waiting.pop(reply.id, None)
        if answer is None:
            _log.warning("the driver answered file request %d, which was never made", reply.id)
        else:
            answer.set_result(reply)

    def close(self) -> None:
        """Fails pending and later requests, since no more answers will come."""
        with self._lock:
            self._gone = True
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.set_exception(EOFError())
