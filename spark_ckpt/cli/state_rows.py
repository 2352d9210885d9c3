"""Rows of state for the output of commands: values of JSON, and at most so many."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from spark_ckpt.cli.describe import Json, JsonObject
from spark_ckpt.state.diffing import CHANGES, StateDiff
from spark_ckpt.state.leaves import with_leaves
from spark_ckpt.state.reading import StateScan


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """Rows that were written to a place.

    Args:
        scan: the rows.
        target: where they are.
        kind: `parquet` or `delta`.
        rows: number of rows.
    """

    scan: StateScan
    target: str
    kind: str
    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class ShownRows:
    """The first rows of a scan.

    Args:
        scan: the scan.
        rows: the rows, by column.
        has_more: whether there are more.
    """

    scan: StateScan
    rows: list[JsonObject]
    has_more: bool


@dataclass(frozen=True, slots=True, eq=False)
class ShownDiff:
    """The first changes of a diff.

    Args:
        diff: the diff.
        rows: the changes, by column.
        counts: number of all changes by their kind.
    """

    diff: StateDiff
    rows: list[JsonObject]
    counts: dict[str, int]


def rows_of_scan(scan: StateScan, limit: int) -> ShownRows:
    """The first rows of a scan; all of them if `limit` is 0."""
    rows: list[JsonObject] = []
    for batch in scan.batches():
        rows += _rows(batch.slice(0, limit + 1 - len(rows)) if limit else batch)
        if limit and len(rows) > limit:
            return ShownRows(scan, rows[:limit], True)
    return ShownRows(scan, rows, False)


def rows_of_diff(diff: StateDiff, limit: int) -> ShownDiff:
    """The first changes; all of them if `limit` is 0."""
    rows: list[JsonObject] = []
    counts = dict.fromkeys(CHANGES, 0)
    for batch in diff.batches():
        rows += _rows(batch.slice(0, limit - len(rows)) if limit else batch)
        for entry in batch.column("change").value_counts().to_pylist():
            counts[entry["values"]] += entry["counts"]
    return ShownDiff(diff, rows, counts)


def _rows(batch: pa.RecordBatch) -> Iterable[JsonObject]:
    schema = pa.schema([pa.field(field.name, with_leaves(field.type, _shown_type)) for field in batch.schema])
    for row in pa.Table.from_batches([batch]).cast(schema).to_pylist():
        yield {name: _json(value) for name, value in row.items()}


def _shown_type(kind: pa.DataType) -> pa.DataType:
    """Times and decimals are text: Python has no room for all of Spark's times, and JSON no decimals."""
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
