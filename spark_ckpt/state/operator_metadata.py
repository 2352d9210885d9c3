"""Spark's operator metadata, version 2 (`OperatorStateMetadataV2`, `TransformWithStateOperatorProperties`).

Version 1 says nothing that the checkpoint does not say itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from spark_ckpt.state.errors import StateSchemaError
from spark_ckpt.storage import Storage


class VariableKind(Enum):
    """What a state variable of a `transformWithState` is (`StateVariableType`)."""

    VALUE = "ValueState"
    LIST = "ListState"
    MAP = "MapState"
    TIMER = "TimerState"


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """What Spark's files say of an operator.

    Args:
        schema_files: the schema file of each store that has one by its batch; relative to the checkpoint location.
        variables: state variables by their name, which is that of their column family.
    """

    schema_files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, VariableKind] = field(default_factory=dict)


def read_operator_metadata(storage: Storage, operator_id: int, batch_id: int) -> OperatorMetadata:
    """What held when a batch ran; nothing where the metadata is of version 1.

    Args:
        storage: of the checkpoint location.
        operator_id: Spark's number of the operator.
        batch_id: of the batch.

    Raises:
        StateSchemaError: the file is damaged.
        StorageError: it cannot be read.
    """
    directory = f"state/{operator_id}/_metadata/v2"
    batches = [int(file.name) for file in storage.list(directory) if file.name.isdigit()]
    if not batches:
        return OperatorMetadata()
    # A batch writes one only if something has changed.
    batch = max((batch for batch in batches if batch <= batch_id), default=None)
    if batch is None:
        raise StateSchemaError(storage.describe(directory), f"there is no operator metadata of batch {batch_id}")
    name = f"{directory}/{batch}"
    try:
        version, _, text = storage.read(name).decode().partition("\n")
        if version != "v2":
            raise ValueError(f"version '{version}' is unknown, v2 is known")
        return _decode(json.loads(text), operator_id)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise StateSchemaError(storage.describe(name), f"it is no operator metadata: {e!r}") from e


def _decode(fields: Mapping[str, Any], operator_id: int) -> OperatorMetadata:
    properties = json.loads(fields["operatorPropertiesJson"])
    # The paths are absolute, and the location may have been moved since.
    files = {
        store["storeName"]: f"state/{operator_id}/_stateSchema/{store['storeName']}/{path.rpartition('/')[2]}"
        for store in fields["stateStoreInfo"]
        for path in store["stateSchemaFilePaths"][-1:]
    }
    variables = {
        variable["stateName"]: VariableKind(variable["stateVariableType"])
        for variable in properties.get("stateVariables", ())
    }
    return OperatorMetadata(files, variables)
