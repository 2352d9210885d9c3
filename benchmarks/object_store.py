"""An object store on this machine: moto's server of S3, in which each request takes a while and is counted."""

from __future__ import annotations

import logging
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HOST = "127.0.0.1"
BUCKET = "benchmark"
_KEY = "benchmark"  # moto takes any
_REGION = "us-east-1"

S3A_JARS = Path(__file__).resolve().parents[1] / "jvm-shim" / "benchmark" / "target" / "s3a"

_SPARK_LOG = re.compile(r"/(offsets|commits|sources|metadata)(/|&|$|\?)")


@dataclass(frozen=True)
class Request:
    """A request to an object store.

    Args:
        moment: when it came, in seconds since 1970.
        target: path and query of its URL.
    """

    moment: float
    target: str

    @property
    def is_of_log(self) -> bool:
        """Whether it is about what Spark itself writes below a checkpoint location, and not about state."""
        return _SPARK_LOG.search(self.target) is not None


class DelayedRequests:
    """A WSGI application before another one: notes each request, waits, and passes it on."""

    def __init__(self, application: Callable[..., Iterable[bytes]], latency_ms: int) -> None:
        self.latency_ms = latency_ms
        self._application = application
        self._noted: list[Request] = []

    @property
    def noted(self) -> tuple[Request, ...]:
        """All of them, in the order in which they came."""
        return tuple(self._noted)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request."""
        target = f"{environ.get('PATH_INFO', '')}?{unquote(environ.get('QUERY_STRING', ''))}"
        self._noted.append(Request(time.time(), target))
        time.sleep(self.latency_ms / 1000)
        return self._application(environ, start_response)


class ObjectStore:
    """A running server with one empty bucket, as a context manager.

    Args:
        latency_ms: what each request waits before it is looked at.
    """

    def __init__(self, latency_ms: int) -> None:
        from moto.moto_server.werkzeug_app import (
            DomainDispatcherApplication,
            MotoRequestHandler,
            create_backend_app,
        )
        from werkzeug.serving import make_server

        class RequestHandler(MotoRequestHandler):
            """Says "100 Continue" once: the asynchronous client of AWS takes a second one for the answer."""

            def handle_expect_100(self) -> bool:
                """Leaves it to werkzeug, which says it as well."""
                return True

        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # else a line for each request
        self.requests = DelayedRequests(DomainDispatcherApplication(create_backend_app), latency_ms)
        self._server = make_server(HOST, 0, self.requests, threaded=True, request_handler=RequestHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="object store", daemon=True)

    @property
    def endpoint(self) -> str:
        """Its URL."""
        return f"http://{HOST}:{self._server.port}"

    def conf(self) -> Mapping[str, str]:
        """Settings with which Spark finds it."""
        options = {
            "endpoint": self.endpoint,
            "endpoint.region": _REGION,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "access.key": _KEY,
            "secret.key": _KEY,
            # State files are read whole, from the beginning to the end: nothing to be clever about.
            "input.stream.type": "classic",
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}

    def environment(self) -> Mapping[str, str]:
        """Variables with which the tools of AWS find it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _KEY,
        }

    def location(self, name: str) -> str:
        """URI of a folder in the bucket."""
        return f"s3a://{BUCKET}/{name}"

    def __enter__(self) -> ObjectStore:
        import s3fs

        self._thread.start()
        client: Any = s3fs.S3FileSystem(
            key=_KEY, secret=_KEY, endpoint_url=self.endpoint, skip_instance_cache=True, use_listings_cache=False
        )
        client.mkdir(BUCKET)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What moto keeps is the process's, and would be there again in the next store.
        with urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")):
            self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def s3a_class_path() -> str:
    """What a driver's class path needs to reach a location on S3; Maven put it into the source tree.

    Raises:
        SystemExit: it is not there.
    """
    if not any(S3A_JARS.glob("hadoop-aws-*.jar")):
        raise SystemExit(f"no S3A jars in {S3A_JARS}: 'make test-python' and 'make demo DEMO_ARGS=--s3' build them")
    return f"{S3A_JARS}/*"
