"""Spark's state schema files, versions 1 to 3 (`org.apache.spark.sql.execution.streaming.state.SchemaHelper`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from spark_ckpt.errors import SparkCkptError, StateFileNotFoundError
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.metadata.data_input import DataInput
from spark_ckpt.spark_files.errors import StateSchemaError
from spark_ckpt.spark_files.operators import DEFAULT_STORE
from spark_ckpt.spark_files.types import Struct, struct_of
from spark_ckpt.storage import Storage

DEFAULT_FAMILY = "default"
"""Spark's name of the default column family, which every store has."""


@dataclass(frozen=True, slots=True)
class FamilySchema:
    """Schema of one column family.

    Args:
        name: name of the column family.
        key: type of the keys as stored.
        value: type of the values.
    """

    name: str
    key: Struct
    value: Struct


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
    if name is None:
        # Spark omits the name of the default store from paths (`StateStoreId.storeCheckpointLocation`).
        folder = "" if store.store == DEFAULT_STORE else f"{store.store}/"
        name = f"state/{store.operator_id}/0/{folder}_metadata/schema"
    path = storage.describe(name)
    try:
        return decode_schema(storage.read(name), path)
    except StateFileNotFoundError:
        raise StateSchemaError(path, "the state schema is missing") from None


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
            return (FamilySchema(DEFAULT_FAMILY, _struct(source.utf("key")), _struct(source.utf("value"))),)
        if version == "v2":
            return (FamilySchema(DEFAULT_FAMILY, _struct(_chunks(source)), _struct(_chunks(source))),)
        if version == "v3":
            return tuple(_family(source) for _ in source.each("families", 20))
        raise ValueError(f"unknown schema version '{version}'; v1 to v3 are supported")
    except (SparkCkptError, ValueError) as e:
        raise StateSchemaError(path, f"it is not a state schema: {getattr(e, 'reason', e)}") from e


def _family(source: DataInput) -> FamilySchema:
    name = source.utf("name")
    source.u16("key schema id")
    key = _struct(_chunks(source))
    source.u16("value schema id")
    value = _struct(_chunks(source))
    for _ in ("key encoder", "user key"):  # the first is for scans, the second repeats a part of the key
        _chunks(source)
    return FamilySchema(name, key, value)


def _chunks(source: DataInput) -> str:
    """Text split into chunks that fit into `writeUTF`."""

    def parts() -> Iterator[str]:
        for _ in source.each("text", 2):
            yield source.utf("chunk")

    return "".join(parts())


def _struct(text: str) -> Struct:
    return struct_of(json.loads(text))
