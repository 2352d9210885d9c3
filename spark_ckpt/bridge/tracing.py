"""Spans of checkpoints for OpenTelemetry, made from their reports (docs/metrics.md).

Only a query with the setting `tracing` imports OpenTelemetry, which the extra `otel` installs.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from spark_ckpt.config import TRACING
from spark_ckpt.coordinator.reports import Report, ReportStatus
from spark_ckpt.errors import SettingError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

_log = logging.getLogger(__name__)

OTEL = "otel"
"""Value of the setting `tracing` for spans."""

MAX_SUBTASKS = 100
"""Subtasks of a checkpoint that have spans: the last to acknowledge. OpenTelemetry's queue holds 2,048 spans."""

_FLUSH_MS = 1000
"""Longest wait for the exporter at the end of the process. The driver kills the process after a few seconds."""

_FIGURES = ("new_bytes", "state_bytes", "chain_length", "rows")
_OF_CHECKPOINT = ("status", "query_id", "query_name", "run_id", "generation", "batch_id", "id", "acks", *_FIGURES)
_IDENTITY = ("operator_id", "store", "partition", "executor")
_OF_SUBTASK = (*_IDENTITY, *_FIGURES, "restore_us")
_TIMES = ("acknowledged_ms", "start_delay_ms", "snapshot_us", "write_us")
_SUBTASK = (*_IDENTITY, *_TIMES, *_FIGURES, "restore_us", "acknowledge_us")
"""Columns of `subtasks` in a report."""


def check_installed() -> None:
    """Checks that OpenTelemetry is installed.

    Raises:
        SettingError: it is not.
    """
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as e:
        remedy = f"{sys.executable} -m pip install 'spark-ckpt[otel]'"
        raise SettingError(TRACING.key, f"'{OTEL}' needs OpenTelemetry ({e}): {remedy}") from e


def exported_spans() -> Spans:
    """Spans that OpenTelemetry's exporter sends. Its standard environment variables configure it.

    Raises:
        SettingError: see `check_installed`.
    """
    check_installed()
    return Spans(_provider().get_tracer("spark_ckpt"))


def flush() -> None:
    """Sends the remaining spans, if any, within a second."""
    if _provider.cache_info().currsize:
        _provider().force_flush(_FLUSH_MS)


@cache
def _provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "spark-ckpt"}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Spans:
    """Spans of the checkpoints of one run. Never raises: a query does not fail for them.

    A checkpoint is a trace: the span `checkpoint`, below it `subtask` with `snapshot`, `write` and `acknowledge`, and
    `publish`.

    Args:
        tracer: creates them.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def add(self, report: Report) -> None:
        """Creates the spans of a checkpoint that has completed or failed. Ignores other reports."""
        try:
            if report["status"] in (ReportStatus.COMPLETED.value, ReportStatus.FAILED.value):
                self._checkpoint(report)
        except Exception:
            _log.exception("cannot trace a checkpoint")

    def _checkpoint(self, report: Report) -> None:
        from opentelemetry.trace import StatusCode

        start = report["triggered_ms"] * 1000
        publish = start + report["duration_ms"] * 1000
        end = publish + (report.get("completing_ms") or 0) * 1000
        attributes = {name: report[name] for name in _OF_CHECKPOINT if report.get(name) is not None}
        attributes |= {f"failures.{reason}": count for reason, count in report["failures"].items()}
        root = self._start("checkpoint", start, None, attributes)
        for subtask in report.get("subtasks", [])[-MAX_SUBTASKS:]:
            self._subtask(root, start, subtask)
        if report["status"] == ReportStatus.COMPLETED.value:
            self._span("publish", publish, end, root)
        else:
            root.set_status(StatusCode.ERROR, report["cause"])
        root.end(end * 1000)

    def _subtask(self, root: Span, triggered: int, row: Sequence[Any]) -> None:
        subtask = dict(zip(_SUBTASK, row, strict=True))
        attributes = {name: subtask[name] for name in _OF_SUBTASK if subtask[name] is not None}
        snapshot = triggered + subtask["start_delay_ms"] * 1000
        write = snapshot + subtask["snapshot_us"]
        acknowledge = max(write + subtask["write_us"], triggered + subtask["acknowledged_ms"] * 1000)
        end = acknowledge + (subtask["acknowledge_us"] or 0)
        span = self._start("subtask", triggered, root, attributes)
        self._span("snapshot", snapshot, write, span)
        self._span("write", write, write + subtask["write_us"], span)
        self._span("acknowledge", acknowledge, end, span)
        span.end(end * 1000)

    def _span(self, name: str, start: int, end: int, parent: Span) -> None:
        """Ended span. Times are microseconds since 1970 UTC."""
        self._start(name, start, parent, {}).end(end * 1000)

    def _start(self, name: str, start: int, parent: Span | None, attributes: Report) -> Span:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        context = Context() if parent is None else set_span_in_context(parent, Context())
        prefixed = {f"spark_ckpt.{key}": value for key, value in attributes.items()}
        return self._tracer.start_span(name, context, attributes=prefixed, start_time=start * 1000)
