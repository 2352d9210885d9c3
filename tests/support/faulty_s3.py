"""An S3 server that fails on demand: moto's, behind an application that inspects each request first.

moto keeps its state per process, so the buckets of `tests.support.s3` are visible here too.
"""

from __future__ import annotations

import io
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from benchmarks.object_store import exclusive_puts
from tests.support.s3 import HOST
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


class S3Fault(Enum):
    """Fault applied to a request."""

    SLOW_DOWN = "it is refused, because there are too many"
    TOO_MANY = "it is refused, by another status for the same"
    CONFLICT = "it is refused, because it conflicts with another one"
    UNAVAILABLE = "somebody on the way, who says no more, refuses it"
    INTERNAL = "it fails within the server"
    UNKNOWN_CONDITION = "it is refused if it has a condition, because the server knows none"
    CONDITION_FAILED = "it is refused, because its condition does not hold, which is not named"
    DROPPED = "the connection ends, and nothing is done"
    ANSWER_DROPPED = "it is done, and the connection ends"
    HELD = "it is held until the server ends, and then not done"
    CONDITION_IGNORED = "it is done as if it had no condition"
    CHECKED_FIRST = "its condition is checked when its head arrives, and it is done when its body has"
    CHECKED_AT_ONCE = "its condition is checked with those of all others that are on their way, and then all are done"


_ANSWERS = {
    S3Fault.SLOW_DOWN: ("503 Slow Down", "SlowDown", "Please reduce your request rate."),
    S3Fault.TOO_MANY: ("429 Too Many Requests", "TooManyRequests", "Please reduce your request rate."),
    S3Fault.CONFLICT: ("409 Conflict", "ConditionalRequestConflict", "A conflicting operation took place."),
    S3Fault.INTERNAL: ("500 Internal Server Error", "InternalError", "We encountered an internal error."),
    S3Fault.UNKNOWN_CONDITION: ("501 Not Implemented", "NotImplemented", "A header implies what is not implemented."),
    S3Fault.CONDITION_FAILED: ("412 Precondition Failed", "PreconditionFailed", "A condition did not hold."),
}
_OF_CONDITIONS = (
    S3Fault.UNKNOWN_CONDITION,
    S3Fault.CONDITION_FAILED,
    S3Fault.CONDITION_IGNORED,
    S3Fault.CHECKED_FIRST,
    S3Fault.CHECKED_AT_ONCE,
)


@dataclass
class _Rule:
    method: str
    part: str
    fault: S3Fault
    times: int


class FaultyS3:
    """A running server, as a context manager."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        heads = self._heads = threading.local()

        class RequestHandler(WSGIRequestHandler):
            """Notes what there is before a client sends the body of its request."""

            def handle_expect_100(handler) -> bool:  # noqa: N805
                heads.exists = self._exists(handler.path)
                return bool(super().handle_expect_100())

        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # otherwise logs a line per request
        self.requests: list[str] = []
        """Method and path of each request, in order of arrival."""
        self._moto: Callable[..., Iterable[bytes]] = DomainDispatcherApplication(create_backend_app)
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._checked: Counter[str] = Counter()
        self._all_checked = threading.Condition(self._lock)
        self._patches = ExitStack()
        self._server = make_server(HOST, 0, self._answer, threaded=True, request_handler=RequestHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="faulty S3", daemon=True)

    @property
    def endpoint(self) -> str:
        """URL of the server."""
        return f"http://{HOST}:{self._server.port}"

    def settings(self) -> dict[str, str]:
        """Hadoop settings that point to the server."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": "test",
        }

    def fail(self, method: str, part: str, fault: S3Fault, times: int = 1) -> None:
        """Makes the next `times` requests fail that use this method and whose path contains `part`."""
        self._rules.append(_Rule(method, part, fault, times))

    def forget(self) -> None:
        """Removes all faults and forgets the requests so far."""
        self._rules.clear()
        self.requests.clear()

    def asked(self, method: str, part: str) -> int:
        """Number of requests with this method whose path contains `part`."""
        return sum(each.startswith(f"{method} ") and part in each for each in self.requests)

    def __enter__(self) -> FaultyS3:
        self._patches.enter_context(exclusive_puts())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._patches.close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        fault = self._fault(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if fault in _OF_CONDITIONS and "HTTP_IF_NONE_MATCH" not in environ:
            fault = None
        if fault is S3Fault.UNAVAILABLE:
            start_response("503 Service Unavailable", [("Content-Type", "text/html")])
            return [b""]
        if fault in _ANSWERS:
            status, code, message = _ANSWERS[fault]
            start_response(status, [("Content-Type", "application/xml")])
            return [f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()]
        if fault is S3Fault.HELD:
            self._ended.wait()
        if fault is S3Fault.ANSWER_DROPPED:
            b"".join(self._moto(environ, lambda *_: None))
        if fault in (S3Fault.DROPPED, S3Fault.ANSWER_DROPPED, S3Fault.HELD):
            _hang_up(environ)
        path = environ["PATH_INFO"]
        if fault is S3Fault.CHECKED_AT_ONCE and not self._exists(path):
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            self._await_another(path)
            del environ["HTTP_IF_NONE_MATCH"]
        if fault is S3Fault.CONDITION_IGNORED or (fault is S3Fault.CHECKED_FIRST and not self._heads.exists):
            del environ["HTTP_IF_NONE_MATCH"]
        return self._moto(environ, start_response)

    def _exists(self, path: str) -> bool:
        from moto.s3.models import s3_backends

        bucket, _, key = unquote(path).lstrip("/").partition("/")
        buckets = s3_backends["123456789012"]["aws"].buckets
        return bucket in buckets and key in buckets[bucket].keys

    def _await_another(self, path: str) -> None:
        """Waits until two requests for a path have found nothing there."""
        with self._all_checked:
            self._checked[path] += 1
            self._all_checked.notify_all()
            assert self._all_checked.wait_for(lambda: self._checked[path] > 1, PATIENCE)

    def _fault(self, method: str, path: str) -> S3Fault | None:
        with self._lock:
            self.requests.append(f"{method} {path}")
            for rule in self._rules:
                if rule.times and rule.method == method and rule.part in path:
                    rule.times -= 1
                    return rule.fault
        return None


def _hang_up(environ: Any) -> None:
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError
