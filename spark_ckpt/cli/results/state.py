"""Rows of state as JSON values and as cells of a table."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from spark_ckpt.cli.formatting import plain
from spark_ckpt.cli.results.metadata_json import Json, JsonObject
from spark_ckpt.cli.results.times import has_far_times, is_time, number_of, time_text
from spark_ckpt.flink.tables.catalog import FlinkCatalog, FlinkState
from spark_ckpt.flink.tables.read import FlinkScan
from spark_ckpt.spark_files.types import map_leaf_types
from spark_ckpt.state.catalog import StateCatalog
from spark_ckpt.state.read import StateScan
from spark_ckpt.state.scan import Scan
from spark_ckpt.state.views import View

_NULL = "null"


def view_json(view: View, catalog: StateCatalog) -> JsonObject:
    """The fields that name the state: location, checkpoint, operator, store and column family."""
    return {
        "location": catalog.location,
        "checkpoint_id": catalog.found.metadata.checkpoint_id,
        "operator_id": view.store.state.operator_id,
        "store": view.store.state.store,
        "variable": view.family.name,
    }


def scan_json(scan: Scan) -> JsonObject:
    """The fields that name the state of a scan."""
    if isinstance(scan, StateScan):
        return view_json(scan.view, scan.catalog)
    assert isinstance(scan, FlinkScan)
    return flink_json(scan.state, scan.catalog)


def flink_json(state: FlinkState, catalog: FlinkCatalog) -> JsonObject:
    """The fields that name a state of Flink: location, checkpoint, operator and state."""
    return {
        "location": catalog.location,
        "checkpoint_id": catalog.metadata.checkpoint_id,
        "operator_id": state.operator_id.hex(),
        "variable": state.name,
    }


def rows_json(batch: pa.RecordBatch) -> Iterator[JsonObject]:
    """The rows of a batch, by column. Bytes are base64; NaN, infinities, times and decimals are text."""
    is_far = has_far_times(batch.columns)
    shown = _numbered_type if is_far else _shown_type
    schema = pa.schema([pa.field(field.name, map_leaf_types(field.type, shown)) for field in batch.schema])
    for row in pa.Table.from_batches([batch]).cast(schema).to_pylist():
        values = {name: _with_times(row[name], batch.schema.field(name).type) for name in row} if is_far else row
        yield {name: _json(value) for name, value in values.items()}


def _numbered_type(kind: pa.DataType) -> pa.DataType:
    return number_of(kind) if is_time(kind) else _shown_type(kind)


def _with_times(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401  (a value of Arrow)
    """A value whose times are numbers, with text instead of them."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _with_times(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(_with_times(key, kind.key_type), _with_times(item, kind.item_type)) for key, item in value]
    if pa.types.is_list(kind):
        return [_with_times(part, kind.value_type) for part in value]
    return time_text(value, kind) if is_time(kind) else value


def _shown_type(kind: pa.DataType) -> pa.DataType:
    # Python cannot represent all of Spark's times, and JSON has no decimals.
    if pa.types.is_duration(kind):
        return pa.int64()
    is_text = pa.types.is_temporal(kind) or pa.types.is_decimal(kind)
    return pa.string() if is_text else kind


def _json(value: object) -> Json:
    if isinstance(value, dict):
        return {name: _json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json(part) for part in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    assert value is None or isinstance(value, (str, int, float))
    return value


def fields_of(columns: Iterable[pa.Field]) -> list[tuple[str, str]]:
    """The fields of structs, and other columns as a field of themselves."""
    return [
        (field.name, part.name)
        for field in columns
        for part in (field.type if pa.types.is_struct(field.type) else [field])
    ]


def title_of(column: str, part: str) -> str:
    """The title of a field."""
    return ".".join(dict.fromkeys((column, part)))


def field_of(value: Json, name: str) -> Json:
    """A field of a struct; any other value unchanged."""
    return value.get(name) if isinstance(value, dict) else value


def cell(value: Json) -> str:
    """The text of a value in a table."""
    if value is None:
        return _NULL
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
