"""Spark's operator metadata: stores of a stateful operator, their schema files, and its state variables.

Sources: `OperatorStateMetadataV1`, `OperatorStateMetadataV2`, `TransformWithStateOperatorProperties`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from spark_ckpt.spark_files.errors import SparkLogFormatError, StateSchemaError
from spark_ckpt.spark_files.text import checked, lines_of, object_of, text_of
from spark_ckpt.storage import Storage

_VERSIONS = (1, 2)
_TIME_MODES = ("NoTime", "ProcessingTime", "EventTime", "None")
_OUTPUT_MODES = ("Append", "Update", "Complete")


class VariableKind(Enum):
    """Kind of a state variable of `transformWithState` (`StateVariableType`)."""

    VALUE = "ValueState"
    LIST = "ListState"
    MAP = "MapState"
    TIMER = "TimerState"


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """Metadata of a stateful operator (Spark: `OperatorStateMetadataV1`, `OperatorStateMetadataV2`).

    The file is `state/<operator>/_metadata/metadata` in version 1, and `state/<operator>/_metadata/v2/<batch>` in
    version 2.

    Args:
        version: 1 or 2.
        metadata: JSON content of the file.
    """

    version: int
    metadata: Mapping[str, Any]

    @classmethod
    def decode(cls, data: bytes, path: str) -> OperatorMetadata:
        """Decodes the content of a file.

        Raises:
            SparkLogFormatError: the file does not describe an operator.
        """
        version, lines = lines_of(data, path, _VERSIONS)
        metadata = cls(version, object_of("\n".join(lines), path))
        checked(path, "the operator", lambda: (metadata.operator_id, metadata.name, metadata.partitions))
        return metadata

    def encode(self) -> bytes:
        """Content of the file."""
        return f"v{self.version}\n{text_of(self.metadata)}".encode()

    @property
    def operator_id(self) -> int:
        """Spark's operator id."""
        return int(self.metadata["operatorInfo"]["operatorId"])

    @property
    def name(self) -> str:
        """Spark's short name of the operator."""
        return str(self.metadata["operatorInfo"]["operatorName"])

    @property
    def partitions(self) -> Mapping[str, int]:
        """Number of partitions by store name. Spark records the number of shuffle partitions even for an operator that
        runs as a single task."""
        return {str(store["storeName"]): int(store["numPartitions"]) for store in self.metadata["stateStoreInfo"]}

    @property
    def schema_files(self) -> Mapping[str, str]:
        """Schema file by store name, relative to the checkpoint location; empty in version 1, where each store has one
        schema file for all batches."""
        if self.version == 1:
            return {}
        # The recorded paths are absolute, but the location may have moved since.
        return {
            store["storeName"]: f"state/{self.operator_id}/_stateSchema/{store['storeName']}/{path.rpartition('/')[2]}"
            for store in self.metadata["stateStoreInfo"]
            for path in store["stateSchemaFilePaths"][-1:]
        }

    @property
    def all_schema_files(self) -> tuple[str, ...]:
        """Schema files of all versions of the state's types, the oldest first, relative to the checkpoint location;
        empty in version 1. Spark keeps those of all stores at the first one."""
        if self.version == 1:
            return ()
        store = self.metadata["stateStoreInfo"][0]
        directory = f"state/{self.operator_id}/_stateSchema/{store['storeName']}"
        return tuple(f"{directory}/{path.rpartition('/')[2]}" for path in store.get("stateSchemaFilePaths", ()))

    def check_properties(self, path: str) -> None:
        """Checks that a start can read the properties of the operator
        (`TransformWithStateOperatorProperties.fromJson`).

        Raises:
            SparkLogFormatError: it cannot.
        """

        def known() -> bool:
            properties = json.loads(self.metadata["operatorPropertiesJson"])
            modes = properties["timeMode"] in _TIME_MODES and properties["outputMode"] in _OUTPUT_MODES
            return modes and all(
                isinstance(variable["stateName"], str)
                and isinstance(variable["ttlEnabled"], bool)
                and VariableKind(variable["stateVariableType"])
                for variable in properties["stateVariables"]
            )

        if self.version == 2 and not checked(path, "the operator's variables", known):
            raise SparkLogFormatError(path, "unknown modes of the operator, or malformed variables")

    @property
    def variables(self) -> Mapping[str, VariableKind]:
        """State variables by name, which is also the name of their column family; empty in version 1."""
        if self.version == 1:
            return {}
        properties = json.loads(self.metadata["operatorPropertiesJson"])
        return {
            variable["stateName"]: VariableKind(variable["stateVariableType"])
            for variable in properties.get("stateVariables", ())
        }

    @property
    def variables_with_ttl(self) -> frozenset[str]:
        """State variables with a time to live (`TransformWithStateVariableInfo`)."""
        if self.version == 1:
            return frozenset()
        properties = json.loads(self.metadata["operatorPropertiesJson"])
        variables = properties.get("stateVariables", ())
        return frozenset(str(each["stateName"]) for each in variables if each.get("ttlEnabled") is True)

    def with_partitions(self, number: int) -> OperatorMetadata:
        """Copy with another number of partitions for all stores."""
        stores = [{**store, "numPartitions": number} for store in self.metadata["stateStoreInfo"]]
        return replace(self, metadata={**self.metadata, "stateStoreInfo": stores})

    def moved_to(self, location: str) -> OperatorMetadata:
        """Copy for another location. Version 2 names schema files by absolute path; if they are missing, Spark does not
        detect a schema change (`StateSchemaCompatibilityChecker.readSchemaFiles`).

        Args:
            location: the checkpoint location in Hadoop's form.
        """
        below = f"/state/{self.operator_id}/"

        def moved(path: str) -> str:
            _, found, name = path.rpartition(below)
            return f"{location}{below}{name}" if found else path

        stores = [
            {**store, "stateSchemaFilePaths": [moved(path) for path in store["stateSchemaFilePaths"]]}
            if "stateSchemaFilePaths" in store
            else store
            for store in self.metadata["stateStoreInfo"]
        ]
        return replace(self, metadata={**self.metadata, "stateStoreInfo": stores})


def read_operator_metadata(storage: Storage, operator_id: int, batch_id: int) -> OperatorMetadata | None:
    """Version 2 metadata of an operator in effect at a batch.

    Args:
        storage: storage of the checkpoint location.
        operator_id: Spark's operator id.
        batch_id: id of the batch.

    Returns:
        The metadata; None for version 1, which only repeats information in the checkpoint.

    Raises:
        StateSchemaError: the file is missing or damaged.
        StorageError: the file cannot be read.
    """
    directory = f"state/{operator_id}/_metadata/v2"
    batches = [int(file.name) for file in storage.list(directory) if file.name.isdigit()]
    if not batches:
        return None
    # A batch writes a file only if the metadata has changed.
    batch = max((batch for batch in batches if batch <= batch_id), default=None)
    if batch is None:
        raise StateSchemaError(storage.describe(directory), f"no operator metadata of batch {batch_id}")
    name = f"{directory}/{batch}"
    try:
        version, _, text = storage.read(name).decode().partition("\n")
        if version != "v2":
            raise ValueError(f"unknown version '{version}'; v2 is supported")
        metadata = OperatorMetadata(2, json.loads(text))
        _ = metadata.schema_files, metadata.variables  # malformed fields raise here
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise StateSchemaError(storage.describe(name), f"it is not operator metadata: {e!r}") from e
    return metadata
