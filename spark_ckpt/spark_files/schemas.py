"""Spark's state schema files, versions 1 to 3 (`org.apache.spark.sql.execution.streaming.state.SchemaHelper`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.metadata.data_output import DataOutput
from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.spark_files.operators import DEFAULT_STORE
from spark_ckpt.spark_files.types import Struct, struct_of
from spark_ckpt.storage import Storage

_CHUNK = 16_384
"""Characters of a chunk, so that its bytes fit into `writeUTF`."""

_NULLABLE = ("nullable", "containsNull", "valueContainsNull")
"""Fields of Spark's types in JSON that tell whether a value may be null (`DataType.json`)."""

DEFAULT_FAMILY = "default"
"""Spark's name of the default column family, which every store has."""


@dataclass(frozen=True, slots=True)
class FamilySchema:
    """Schema of one column family.

    Args:
        name: name of the column family.
        key: type of the keys as stored.
        value: type of the values.
        required: columns of the values that Spark declares as never null.
    """

    name: str
    key: Struct
    value: Struct
    required: frozenset[str] = frozenset()


def read_schema(storage: Storage, store: StoreKey, name: str | None = None) -> tuple[FamilySchema, ...]:
    """Schemas of the column families of a store.

    Args:
        storage: storage of the checkpoint location.
        store: the store.
        name: schema file of the store, relative to the checkpoint location; by default, the one for all batches.

    Raises:
        StateSchemaError: the file is missing or damaged.
        StorageError: the file cannot be read.
    """
    name = schema_file(store) if name is None else name
    path = storage.describe(name)
    try:
        return decode_schema(storage.read(name), path)
    except StateFileNotFoundError:
        raise StateSchemaError(path, "the state schema is missing") from None


def schema_file(store: StoreKey) -> str:
    """Schema file of a store that has one for all batches, relative to the checkpoint location."""
    # Spark omits the name of the default store from paths (`StateStoreId.storeCheckpointLocation`).
    folder = "" if store.store == DEFAULT_STORE else f"{store.store}/"
    return f"state/{store.operator_id}/0/{folder}_metadata/schema"


def decode_schema(content: bytes, path: str) -> tuple[FamilySchema, ...]:
    """Schemas of the column families in a schema file. Versions 1 and 2 only have the default one.

    Args:
        content: content of the file.
        path: path of the file, for errors.

    Raises:
        StateSchemaError: the file is damaged, has an unknown version, or contains an unknown type.
    """
    source = DataInput(content, path)
    try:
        version = source.utf("version")
        if version == "v1":
            return (_schema(DEFAULT_FAMILY, source.utf("key"), source.utf("value")),)
        if version == "v2":
            return (_schema(DEFAULT_FAMILY, chunks(source), chunks(source)),)
        if version == "v3":
            return tuple(_family(source) for _ in source.each("families", 20))
        raise ValueError(f"unknown schema version '{version}'; v1 to v3 are supported")
    except (SparkCkptError, ValueError) as e:
        raise StateSchemaError(path, f"it is not a state schema: {getattr(e, 'reason', e)}") from e


def with_nullable_columns(content: bytes, path: str) -> bytes:
    """The content of a schema file of version 2 with all columns nullable.

    Spark accepts a stored schema whose columns are nullable where those of the query are not
    (`StateSchemaCompatibilityChecker`), and rows have the same bytes either way.

    Args:
        content: content of the file.
        path: path of the file, for errors.

    Returns:
        The new content; the same for another version.

    Raises:
        StateSchemaError: the file is damaged.
    """
    source = DataInput(content, path)
    try:
        if source.utf("version") != "v2":
            return content
        parts = [_nullable(json.loads(chunks(source))) for _ in ("key", "value")]
    except (SparkCkptError, ValueError) as e:
        raise StateSchemaError(path, f"it is not a state schema: {getattr(e, 'reason', e)}") from e
    out = DataOutput()
    out.utf("v2", "version")
    for part in parts:
        text = json.dumps(part, separators=(",", ":"), ensure_ascii=False)
        pieces = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
        out.i32(len(pieces), "chunks")
        for piece in pieces:
            out.utf(piece, "chunk")
    return out.getvalue()


def _nullable(value: Any) -> Any:  # noqa: ANN401  (a type in JSON)
    if isinstance(value, list):
        return [_nullable(part) for part in value]
    if not isinstance(value, dict):
        return value
    # The metadata of a column belongs to the user.
    parts = {key: part if key == "metadata" else _nullable(part) for key, part in value.items()}
    return {**parts, **{key: True for key in _NULLABLE if key in parts}}


def _family(source: DataInput) -> FamilySchema:
    name = source.utf("name")
    source.u16("key schema id")
    key = chunks(source)
    source.u16("value schema id")
    value = chunks(source)
    for _ in ("key encoder", "user key"):  # the first is for scans, the second repeats a part of the key
        chunks(source)
    return _schema(name, key, value)


def _schema(name: str, key: str, value: str) -> FamilySchema:
    """Schema of a family, from the JSON of its key and value types."""
    fields = json.loads(value)
    kind = struct_of(fields)
    nullable = [bool(field.get("nullable", True)) for field in fields["fields"]]
    required = frozenset(column for column, may_be_null in zip(kind.names, nullable, strict=True) if not may_be_null)
    return FamilySchema(name, struct_of(json.loads(key)), kind, required)


def chunks(source: DataInput) -> str:
    """Text split into chunks that fit into `writeUTF`."""

    def parts() -> Iterator[str]:
        for _ in source.each("text", 2):
            yield source.utf("chunk")

    return "".join(parts())
