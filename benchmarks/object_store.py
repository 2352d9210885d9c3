"""A local object store: moto's S3 server, with a delay and a counter for each request."""

from __future__ import annotations

import logging
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from unittest.mock import patch
from urllib.parse import unquote

import pyspark

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HOST = "127.0.0.1"
BUCKET = "benchmark"
_KEY = "benchmark"  # moto accepts any key
_REGION = "us-east-1"

MODULE = Path(__file__).resolve().parents[1] / "jvm-shim" / "benchmark"
"""Maven's module of the floor provider and S3A."""

_SPARK_LOG = re.compile(r"/(offsets|commits|sources|metadata)(/|&|$|\?)")

_LISTING = re.compile(r"[?&](list-type|prefix|delimiter|uploads)\b")


@dataclass(frozen=True)
class Request:
    """A request to an object store.

    Args:
        moment: time of arrival, in seconds since 1970.
        target: path and query of its URL.
        method: HTTP method.
    """

    moment: float
    target: str
    method: str = "GET"

    @property
    def price(self) -> Literal["write", "read", "free"]:
        """How object stores bill it: a listing as a write, a deletion not at all. A deletion of many objects, which S3
        gets as a POST, counts as a write."""
        if self.method in ("PUT", "POST") or _LISTING.search(self.target):
            return "write"
        return "free" if self.method == "DELETE" else "read"

    @property
    def is_of_log(self) -> bool:
        """True if the request concerns Spark's own files below a checkpoint location, rather than state."""
        return _SPARK_LOG.search(self.target) is not None


@contextmanager
def exclusive_puts() -> Iterator[None]:
    """Makes moto in this process put one object at a time: it looks for an object and then puts its own, so that two
    conditional puts may both find none."""
    from moto.s3.responses import S3Response

    one_at_a_time, put_object = threading.Lock(), S3Response.put_object

    def put_object_alone(response: S3Response) -> object:
        with one_at_a_time:
            return put_object(response)

    with patch.object(S3Response, "put_object", put_object_alone):
        yield


class DelayedRequests:
    """WSGI middleware that records each request, waits, and passes it on."""

    def __init__(self, application: Callable[..., Iterable[bytes]], latency_ms: int) -> None:
        self.latency_ms = latency_ms
        self._application = application
        self._noted: list[Request] = []

    @property
    def noted(self) -> tuple[Request, ...]:
        """All requests, in order of arrival."""
        return tuple(self._noted)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answers a request."""
        target = f"{environ.get('PATH_INFO', '')}?{unquote(environ.get('QUERY_STRING', ''))}"
        self._noted.append(Request(time.time(), target, environ.get("REQUEST_METHOD", "GET")))
        time.sleep(self.latency_ms / 1000)
        return self._application(environ, start_response)


class ObjectStore:
    """A running server with one empty bucket, as a context manager.

    Args:
        latency_ms: delay before each request is handled.
    """

    def __init__(self, latency_ms: int) -> None:
        from moto.moto_server.werkzeug_app import (
            DomainDispatcherApplication,
            MotoRequestHandler,
            create_backend_app,
        )
        from werkzeug.serving import make_server

        class RequestHandler(MotoRequestHandler):
            """Sends "100 Continue" only once: the asynchronous AWS client takes a second one for the response."""

            def handle_expect_100(self) -> bool:
                """Leaves it to werkzeug, which sends it as well."""
                return True

        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # otherwise logs a line per request
        self.requests = DelayedRequests(DomainDispatcherApplication(create_backend_app), latency_ms)
        self._server = make_server(HOST, 0, self.requests, threaded=True, request_handler=RequestHandler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="object store", daemon=True)
        self._patches = ExitStack()

    @property
    def endpoint(self) -> str:
        """URL of the server."""
        return f"http://{HOST}:{self._server.port}"

    def conf(self) -> Mapping[str, str]:
        """Spark settings for access to the store."""
        options = {
            "endpoint": self.endpoint,
            "endpoint.region": _REGION,
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
            "access.key": _KEY,
            "secret.key": _KEY,
            # State files are read whole, sequentially: no read-ahead logic needed.
            "input.stream.type": "classic",
        }
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in options.items()}

    def environment(self) -> Mapping[str, str]:
        """Environment variables for access to the store with AWS tools."""
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

        self._patches.enter_context(exclusive_puts())
        self._thread.start()
        client: Any = s3fs.S3FileSystem(
            key=_KEY, secret=_KEY, endpoint_url=self.endpoint, skip_instance_cache=True, use_listings_cache=False
        )
        client.mkdir(BUCKET)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # moto keeps its state per process; it would reappear in the next store.
        with urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")):
            self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._patches.close()


def hadoop_version() -> str:
    """Version of the Hadoop in PySpark."""
    (api,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return api.stem.removeprefix("hadoop-client-api-")


def s3a_jars() -> Path:
    """Directory of S3A's jars for the Hadoop in PySpark; those of another version lack its classes."""
    return MODULE / "target" / f"s3a-{hadoop_version()}"


def s3a_class_path() -> str:
    """Class path that a driver needs to reach a location on S3; Maven copied the jars into the source tree.

    Raises:
        SystemExit: the jars are missing.
    """
    jars = s3a_jars()
    if not any(jars.glob("hadoop-aws-*.jar")):
        command = "mvn -f jvm-shim/pom.xml -pl benchmark dependency:copy-dependencies@copy"
        raise SystemExit(f"no S3A jars in {jars}: run '{command} -Dhadoop.version={hadoop_version()}'")
    return f"{jars}/*"
