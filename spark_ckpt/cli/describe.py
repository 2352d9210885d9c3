"""Metadata as JSON: every field under its name in the model, so that nothing in the file is missing."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from spark_ckpt.cli.inspection import Inspection
from spark_ckpt.cli.summary import iso_time
from spark_ckpt.completed import CheckpointRecord
from spark_ckpt.coordinator.batch_state import StoreState
from spark_ckpt.errors import SparkCkptError
from spark_ckpt.metadata import (
    CheckpointMetadata,
    KeyGroupRange,
    KeyGroupRangeOffsets,
    MasterState,
    OperatorState,
    OperatorSubtaskState,
    required_release,
)
from spark_ckpt.metadata.properties import CheckpointProperties

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

_DEEPEST_PAYLOAD = 50


def describe(inspection: Inspection) -> JsonObject:
    """Everything that a checkpoint's metadata says.

    Objects of the model carry their class as `type`. Bytes are base64; the payload of a master state is JSON if it is
    JSON. Subtask states are a list with the `index` of each.
    """
    metadata = inspection.found.metadata
    return {
        "path": inspection.found.path,
        "size": inspection.found.size,
        "version": metadata.version,
        "checkpoint_id": metadata.checkpoint_id,
        "record": describe_record(inspection.found.record) if inspection.found.record else None,
        "required_release": describe_required_release(metadata),
        "properties": describe_properties(inspection.properties),
        "master_states": [_master_state(state) for state in metadata.master_states],
        "operator_states": [_operator(inspection, operator) for operator in metadata.operator_states],
    }


def describe_record(record: CheckpointRecord) -> JsonObject:
    """What is recorded of a completed checkpoint, and its time as text."""
    return {**asdict(record), "timestamp": iso_time(record.timestamp_ms)}


def describe_properties(properties: CheckpointProperties | None) -> Json:
    """How Flink treats the checkpoint; None if the file does not say."""
    return _value(properties)


def describe_required_release(metadata: CheckpointMetadata) -> JsonObject:
    """Which releases of Flink can read the metadata."""
    required = required_release(metadata)
    return {"release": str(required.release), "reasons": list(required.reasons)}


def describe_error(error: SparkCkptError) -> JsonObject:
    """The class of an error as `error`, its `message`, and its attributes."""
    attributes = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"error": type(error).__name__, "message": str(error), **attributes}


def decoded_payload(payload: bytes) -> Json:
    """The payload of a master state as a JSON value or as text; None if it is neither."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        # Such as the text of Spark's logs: lines, the first of which is a version.
        return text
    return value if _can_be_written(value) else text


def _can_be_written(value: Json, depth: int = 0) -> bool:
    """Whether a value that Python has read as JSON is JSON: it reads `NaN` and `1e999`, and deeper than it writes."""
    if isinstance(value, float):
        return isfinite(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth < _DEEPEST_PAYLOAD and all(_can_be_written(item, depth + 1) for item in items)


def _master_state(state: MasterState) -> JsonObject:
    described: JsonObject = {"name": state.name, "version": state.version, "size": len(state.payload)}
    decoded = decoded_payload(state.payload)
    if decoded is None:
        return described | {"payload_base64": _base64(state.payload)}
    return described | {"payload": decoded}


def _operator(inspection: Inspection, operator: OperatorState) -> JsonObject:
    store = inspection.stores.get(operator.operator_id)
    return {
        "type": type(operator).__name__,
        "operator_id": operator.operator_id.hex(),
        "name": inspection.name_of(operator),
        "store": None if store is None else _store(store),
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "state_size": inspection.state_size_of(operator),
        "coordinator_state": _value(operator.coordinator_state),
        "subtask_states": [
            _subtask(inspection, operator, index, subtask) for index, subtask in operator.subtask_states.items()
        ],
    }


def _store(store: StoreState) -> JsonObject:
    return {
        "operator_id": store.operator_id,
        "name": store.name,
        "store": store.store,
        "state_format_version": store.state_format_version,
        "rows": sum(store.rows),
    }


def _subtask(inspection: Inspection, operator: OperatorState, index: int, subtask: OperatorSubtaskState) -> JsonObject:
    described: JsonObject = {"index": index, **_object(subtask)}
    store = inspection.stores.get(operator.operator_id)
    if store is not None and index < store.parallelism:
        segments = inspection.segments_of(operator, index)
        described |= {
            "rows": store.rows[index],
            "ckpt_id": store.ckpt_ids[index],
            "segments": [
                {"kind": "base" if s.is_base else "delta", "version": s.version, "size": s.size} for s in segments
            ],
        }
    return described


def _value(value: object) -> Json:
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {name: _value(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"no JSON for a {type(value).__name__}")


def _object(value: DataclassInstance) -> JsonObject:
    if isinstance(value, KeyGroupRangeOffsets):
        return {**_object(value.key_group_range), "offsets": value.offsets.tolist()}
    if isinstance(value, KeyGroupRange):
        return {"start": value.start, "end": value.end}
    return {"type": type(value).__name__} | {f.name: _value(getattr(value, f.name)) for f in fields(value)}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
