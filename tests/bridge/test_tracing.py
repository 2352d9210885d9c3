"""Spans of checkpoints, in the exporters of OpenTelemetry's SDK."""

from __future__ import annotations

import gzip
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spark_ckpt.bridge.settings_check import check_settings
from spark_ckpt.bridge.tracing import MAX_SUBTASKS, Spans
from spark_ckpt.completed import JobStatus
from spark_ckpt.config import TRACING
from spark_ckpt.errors import SettingError
from spark_ckpt.messages import Operator
from tests.bridge import wire
from tests.bridge.remote_driver import RemoteDriver, run_batch
from tests.bridge.side_process import SideProcess
from tests.support.driver import Driver
from tests.support.waiting import eventually

PHASES = ["snapshot", "write", "acknowledge"]


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider.get_tracer("test"))


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def children(exporter: InMemorySpanExporter, parent: ReadableSpan) -> list[ReadableSpan]:
    return [s for s in exporter.get_finished_spans() if s.parent is not None and s.parent == parent.context]


def times(span: ReadableSpan) -> tuple[int, int]:
    """Start and end in milliseconds since 1970 UTC."""
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time // 1_000_000, span.end_time // 1_000_000


def test_a_completed_checkpoint(spans: Spans, exporter: InMemorySpanExporter, tmp_path: Path) -> None:
    """Its trace has a span per subtask with phases one after the other, within the span of the checkpoint."""
    driver = Driver(tmp_path, query_name="orders", report_details=True)
    driver.batch(1)
    for report in driver.reports:
        spans.add(report)
    (root,) = named(exporter, "checkpoint")
    assert root.parent is None
    assert root.attributes is not None
    expected = {"query_name": "orders", "run_id": driver.run_id, "batch_id": 0, "status": "completed", "acks": 4}
    assert root.attributes.items() >= {f"spark_ckpt.{key}": value for key, value in expected.items()}.items()
    report = driver.reports[-1]
    end = report["triggered_ms"] + report["duration_ms"] + report["completing_ms"]
    assert times(root) == (report["triggered_ms"], end)
    below = children(exporter, root)
    assert [span.name for span in below] == ["subtask"] * 4 + ["publish"]
    assert times(below[-1]) == (end - report["completing_ms"], end)
    for partition, subtask in enumerate(below[:-1]):
        assert subtask.attributes is not None
        assert subtask.attributes["spark_ckpt.partition"] == partition
        phases = children(exporter, subtask)
        assert [span.name for span in phases] == PHASES
        moments = [moment for span in phases for moment in (span.start_time, span.end_time)]
        assert moments == sorted(moments, key=lambda moment: moment or 0)
    assert len({span.context.trace_id for span in exporter.get_finished_spans() if span.context}) == 1


def test_a_failed_checkpoint(spans: Spans, exporter: InMemorySpanExporter, tmp_path: Path) -> None:
    driver = Driver(tmp_path, report_details=True)
    driver.trigger(1).close(JobStatus.CANCELLED)
    for report in driver.reports:
        spans.add(report)
    (root,) = exporter.get_finished_spans()
    assert (root.name, root.status.is_ok) == ("checkpoint", False)
    assert (root.status.description or "").startswith("query ended")


def test_phases_have_the_durations_of_the_report(spans: Spans, exporter: InMemorySpanExporter) -> None:
    row = [0, "default", 1, "exec-1", 90, 10, 2_000, 30_000, 7, None, None, 5, 6_000, 8_000]
    report = {"status": "completed", "triggered_ms": 1000, "duration_ms": 90, "completing_ms": 8, "subtasks": [row]}
    spans.add({**report, "failures": {"storage": 2}})
    found = {span.name: times(span) for span in exporter.get_finished_spans()}
    assert found["snapshot"] == (1010, 1012)
    assert found["write"] == (1012, 1042)
    assert found["acknowledge"] == (1090, 1098)
    assert found["subtask"] == (1000, 1098)
    assert found["publish"] == (1090, 1098)
    assert found["checkpoint"] == (1000, 1098)
    (root,) = named(exporter, "checkpoint")
    assert root.attributes == {"spark_ckpt.status": "completed", "spark_ckpt.failures.storage": 2}
    (subtask,) = named(exporter, "subtask")
    assert (subtask.attributes or {})["spark_ckpt.restore_us"] == 6_000


def test_the_last_subtasks_have_spans(spans: Spans, exporter: InMemorySpanExporter, tmp_path: Path) -> None:
    wide = Operator(0, "stateStoreSave", ("default",), MAX_SUBTASKS + 5)
    driver = Driver(tmp_path, operators=(wide,), report_details=True)
    driver.batch(1)
    spans.add(driver.reports[-1])
    subtasks = [span.attributes or {} for span in named(exporter, "subtask")]
    assert [attributes["spark_ckpt.partition"] for attributes in subtasks] == list(range(5, wide.parallelism))


def test_a_report_that_cannot_be_traced_does_no_harm(spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        spans.add({"status": "completed"})
    assert "cannot trace" in caplog.text


def test_without_the_package_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_settings({TRACING.key: "otel"})
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    check_settings({})
    with pytest.raises(SettingError, match=r"spark-ckpt\[otel\]"):
        check_settings({TRACING.key: "otel"})


def test_nothing_is_imported_unless_a_query_has_the_setting() -> None:
    program = "import sys, spark_ckpt.bridge.server; sys.exit(any('opentelemetry' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False, env=dict(os.environ)).returncode == 0


class Collector:
    """Server that takes spans as OpenTelemetry's collector does."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str]] = []
        """Service and name of each span."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.spans += outer.parse(body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Is silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    @staticmethod
    def parse(body: bytes) -> list[tuple[str, str]]:
        found = []
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = {a.key: a.value.string_value for a in resource.resource.attributes}
            found += [(names["service.name"], span.name) for scope in resource.scope_spans for span in scope.spans]
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
    yield collector
    collector.close()


def test_a_side_process_exports_them(collector: Collector, tmp_path: Path) -> None:
    driver = RemoteDriver(tmp_path)
    with SideProcess() as process:
        process.ask(*wire.START)
        run_batch(process, driver, 1)
        process.ask("close", {"job": driver.run_id, "status": "cancelled"})
        driver.run_id, driver.settings = "another run", {"tracing": "otel"}
        run_batch(process, driver, 2)
        process.ask("close", {"job": driver.run_id, "status": "cancelled"})
        process.end_input()
    eventually(lambda: ("spark-ckpt", "checkpoint") in collector.spans)
    names = [name for _, name in collector.spans]
    assert sorted(names) == sorted(["checkpoint", "publish", *(["subtask", *PHASES] * 4)])
