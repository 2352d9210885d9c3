"""A proxy in front of an object store that fails on demand: it refuses, drops, delays and repeats requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

HOST = "127.0.0.1"
_OF_A_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length")


class Loss(Enum):
    """What becomes of a request, other than an answer of the proxy."""

    DROPPED = "the connection ends, and nothing is done"
    ANSWER_DROPPED = "it is done, and the connection ends"
    HELD = "it is held until the proxy ends, and then not done"
    REPEATED = "it is done twice, and the second answer is given"


@dataclass(frozen=True)
class Refusal:
    """An answer of the proxy, without the store.

    Args:
        status: HTTP status.
        body: content of the answer.
        headers: its headers.
    """

    status: int
    body: bytes = b""
    headers: Mapping[str, str] | None = None


@dataclass
class _Rule:
    method: str
    part: str
    fault: Loss | Refusal
    times: int


class FaultyProxy:
    """A running proxy, as a context manager.

    Args:
        store: host and port of the object store.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.requests: list[str] = []
        """Method and path of each request, in order of arrival."""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def __getattr__(self, name: str) -> Any:
                if name.startswith("do_"):
                    return lambda: proxy._answer(self)
                raise AttributeError(name)

            def log_message(self, format: str, *_: object) -> None:  # noqa: A002
                return

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="faulty proxy", daemon=True)

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{HOST}:{self._server.server_address[1]}"

    def fail(self, method: str, part: str, fault: Loss | Refusal, times: int = 1) -> None:
        """Makes the next `times` requests fail that use this method and whose path contains `part`."""
        self._rules.append(_Rule(method, part, fault, times))

    def forget(self) -> None:
        """Removes all faults and forgets the requests so far."""
        self._rules.clear()
        self.requests.clear()

    def __enter__(self) -> FaultyProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _fault(self, method: str, path: str) -> Loss | Refusal | None:
        with self._lock:
            self.requests.append(f"{method} {path}")
            for rule in self._rules:
                if rule.times and rule.method == method and rule.part in path:
                    rule.times -= 1
                    return rule.fault
        return None

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        fault = self._fault(request.command, request.path)
        if isinstance(fault, Refusal):
            _send(request, fault.status, dict(fault.headers or {}), fault.body)
            return
        if fault is Loss.HELD:
            self._ended.wait()
        if fault in (Loss.DROPPED, Loss.HELD):
            request.close_connection = True
            return
        answer = [self._forward(request, body) for _ in range(2 if fault is Loss.REPEATED else 1)][-1]
        if fault is Loss.ANSWER_DROPPED:
            request.close_connection = True
            return
        _send(request, *answer)

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self._store)
        try:
            headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            connection.request(request.command, request.path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


def _send(request: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str], body: bytes) -> None:
    request.send_response(status)
    for name, value in headers.items():
        if name.lower() not in _OF_A_CONNECTION:
            request.send_header(name, value)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)
