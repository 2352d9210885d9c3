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
"""Spark's name of the column family that every store has."""


@dataclass(frozen=True, slots=True)
class FamilySchema:
    """The rows of one column family.

    Args:
        name: of the family.
        key: of its keys as they are stored.
        value: of its values.
    """

    name: str
    key: Struct
    value: Struct


def read_schema(storage: Storage, store: StoreKey, name: str | None = None) -> tuple[FamilySchema, ...]:
    """The column families of a store.

    Args:
        storage: of the checkpoint location.
        store: the store.
        name: its schema file, relative to the location; by default the one that holds for all batches.

    Raises:
        StateSchemaError: the file is missing or damaged.
        StorageError: it cannot be read.
    """
    if name is None:
        # Spark leaves the name of the default store out of paths (`StateStoreId.storeCheckpointLocation`).
        folder = "" if store.store == DEFAULT_STORE else f"{store.store}/"
        name = f"state/{store.operator_id}/0/{folder}_metadata/schema"
    path = storage.describe(name)
    try:
        return decode_schema(storage.read(name), path)
    except StateFileNotFoundError:
        raise StateSchemaError(path, "the state schema is missing") from None


def decode_schema(content: bytes, path: str) -> tuple[FamilySchema, ...]:
    """The column families of a schema file. Versions 1 and 2 have the default one only.

    Args:
        content: the file.
        path: its name, for errors.

    Raises:
        StateSchemaError: it is damaged, of another version, or has a type that is not known.
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
        raise ValueError(f"version '{version}' of the schema is unknown, v1 to v3 are known")
    except (SparkCkptError, ValueError) as e:
        raise StateSchemaError(path, f"it is no state schema: {getattr(e, 'reason', e)}") from e


def _family(source: DataInput) -> FamilySchema:
    name = source.utf("name")
    source.u16("key schema id")
    key = _struct(_chunks(source))
    source.u16("value schema id")
    value = _struct(_chunks(source))
    for _ in ("key encoder", "user key"):  # what a scan needs, and a part of the key again
        _chunks(source)
    return FamilySchema(name, key, value)


def _chunks(source: DataInput) -> str:
    """A text in parts, each of which `writeUTF` can hold."""

    def parts() -> Iterator[str]:
        for _ in source.each("text", 2):
            yield source.utf("chunk")

    return "".join(parts())


def _struct(text: str) -> Struct:
    return struct_of(json.loads(text))
