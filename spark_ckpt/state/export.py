"""Rows as a Parquet file or as a new Delta table, written batch by batch, without Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from spark_ckpt.clock import SystemClock
from spark_ckpt.errors import SparkCkptError, StorageError
from spark_ckpt.location.errors import TargetExistsError
from spark_ckpt.location.file_system import file_system_of, reading, storage_at
from spark_ckpt.spark_files.types import map_leaf_types
from spark_ckpt.storage import create_or_find

_FIRST_COMMIT = f"_delta_log/{0:020d}.json"

_DELTA_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
    pa.timestamp("us"): "timestamp_ntz",
}


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: str) -> int:
    """Writes rows to a new Parquet file, in full or not at all.

    Args:
        schema: schema of the rows.
        batches: the rows.
        path: path or URL of the new file.

    Returns:
        Number of rows.

    Raises:
        TargetExistsError: the file exists already.
        StorageError: it cannot be written.
    """
    file_system, name = file_system_of(path)
    with reading(path):
        if file_system.exists(name):
            raise TargetExistsError(path)
    return _write(file_system, name, path, schema, batches)


def write_delta(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: str) -> int:
    """Writes rows as a new Delta table: one Parquet file, and then the first commit of its log, created exclusively.

    Types that Delta lacks are converted: day-time intervals to microseconds, times of day to nanoseconds, null columns
    to text. Year-month intervals are already numbers of months, and variants structs.

    Args:
        schema: schema of the rows.
        batches: the rows.
        path: path or URL of a directory without a Delta table.

    Returns:
        Number of rows.

    Raises:
        TargetExistsError: there is a Delta table.
        StorageError: it cannot be written.
    """
    file_system, directory = file_system_of(path)
    storage = storage_at(path)
    if storage.exists(_FIRST_COMMIT):
        raise TargetExistsError(path)
    target = pa.schema([pa.field(field.name, map_leaf_types(field.type, _delta_type)) for field in schema])
    part = f"part-00000-{uuid.uuid4()}.parquet"
    with reading(path):
        file_system.makedirs(directory, exist_ok=True)
    rows = _write(file_system, f"{directory}/{part}", f"{path}/{part}", target, batches)
    commit = _first_commit(target, part, storage.size(part), SystemClock().now_ms())
    if not create_or_find(storage, _FIRST_COMMIT, commit):
        storage.delete(part)
        raise TargetExistsError(path)
    return rows


def _write(
    file_system: fsspec.AbstractFileSystem,
    name: str,
    path: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> int:
    stored = pa.schema([pa.field(field.name, _parquet_type(field.type)) for field in schema])
    rows = 0
    try:
        with (
            file_system.transaction,
            file_system.open(name, "wb") as file,
            pq.ParquetWriter(file, stored) as writer,
        ):
            for batch in batches:
                writer.write_batch(_converted(batch, stored))
                rows += len(batch)
    except SparkCkptError:
        raise
    except Exception as e:  # every fsspec file system has exceptions of its own
        raise StorageError(path, "write", e) from e
    return rows


def _converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.nulls(len(batch), field.type) if _is_empty(column.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _parquet_type(kind: pa.DataType) -> pa.DataType:
    """Parquet has no struct without fields, such as the key of an aggregate without grouping."""
    return pa.null() if _is_empty(kind) else kind


def _is_empty(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) and kind.num_fields == 0)


def _delta_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return pa.int64()
    return pa.string() if pa.types.is_null(kind) or _is_empty(kind) else kind


def _first_commit(schema: pa.Schema, part: str, size: int, now_ms: int) -> bytes:
    """The first commit of a table with one file (Delta's protocol: protocol, metaData, add)."""
    protocol: dict[str, object] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if _has_local_times(schema):
        features = ["timestampNtz"]
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": [*features, "appendOnly", "invariants"],
        }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(_delta_json(pa.struct(list(schema)))),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": now_ms,
    }
    add = {"path": part, "partitionValues": {}, "size": size, "modificationTime": now_ms, "dataChange": True}
    actions = ({"protocol": protocol}, {"metaData": metadata}, {"add": add})
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def _delta_json(kind: pa.DataType) -> object:
    """A type in the JSON of Delta's schemas, which is the same as Spark's."""
    if pa.types.is_struct(kind):
        fields = [
            {"name": field.name, "type": _delta_json(field.type), "nullable": True, "metadata": {}} for field in kind
        ]
        return {"type": "struct", "fields": fields}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta_json(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        key, item = _delta_json(kind.key_type), _delta_json(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": True}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _DELTA_NAMES[kind]


def _has_local_times(schema: pa.Schema) -> bool:
    def within(kind: pa.DataType) -> Iterator[pa.DataType]:
        yield kind
        for index in range(kind.num_fields):
            yield from within(kind.field(index).type)

    return any(kind == pa.timestamp("us") for field in schema for kind in within(field.type))
