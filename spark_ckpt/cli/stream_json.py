"""Reports of streams as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping

from spark_ckpt.cli.describe import Json, JsonObject, describe_error
from spark_ckpt.cli.stream_report import StateReport, StreamReport
from spark_ckpt.metadata.streams import Datum, Timer, TimeWindow


def describe_stream(report: StreamReport) -> JsonObject:
    """Everything that a report of a stream says."""
    return {
        "operator_id": report.operator.operator_id.hex(),
        "name": report.operator_name,
        "subtask": report.subtask,
        "role": report.role,
        "form": report.form,
        "path": report.path,
        "size": report.size,
        "compressed": report.compressed,
        "key_serializer": report.key_serializer,
        "states": [_state(state) for state in report.states],
        "errors": [describe_error(error) for error in report.errors],
        "failed": report.has_failed,
    }


def _state(state: StateReport) -> JsonObject:
    return {
        "name": state.name,
        "kind": state.kind,
        "serializers": dict(state.serializers),
        "entries": state.entries,
        "removed": state.removed,
        "size": state.size,
        "key_groups": list(state.entries_by_key_group),
        "entries_by_key_group": list(state.entries_by_key_group.values()),
        "samples": [_sample(sample) for sample in state.samples],
    }


def _sample(sample: Mapping[str, Datum]) -> JsonObject:
    return {part: _value(datum.value if datum.known else datum.raw) for part, datum in sample.items()}


def _value(value: object) -> Json:
    if isinstance(value, (Timer, TimeWindow)):
        return {name: _value(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no number for it.
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"no JSON for a {type(value).__name__}")
