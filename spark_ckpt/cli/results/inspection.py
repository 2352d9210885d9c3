"""A checkpoint as `inspect` shows it: its metadata, with the names that our master state gives to operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_ckpt.checkpoint.batch import SparkBatch, StoreState
from spark_ckpt.checkpoint.compose import operator_id_of, spark_batch_of
from spark_ckpt.cli.results.metadata_json import (
    JsonObject,
    base64_text,
    decoded_payload,
    describe_properties,
    describe_record,
    describe_required_release,
    object_json,
    value_json,
)
from spark_ckpt.errors import CheckpointError
from spark_ckpt.location.find import FoundCheckpoint
from spark_ckpt.metadata import MasterState, OperatorState, OperatorSubtaskState
from spark_ckpt.metadata.properties import CheckpointProperties, decode


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a subtask's chain.

    Args:
        is_base: True for a base snapshot, False for a delta.
        version: state version of a base snapshot, or that a delta leads to.
        size: bytes.
    """

    is_base: bool
    version: int
    size: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """The metadata of a checkpoint, and what our master state adds to it.

    Args:
        found: the checkpoint.
        properties: Flink's properties of it, if the file has them.
        batch: the batch of Spark that it belongs to, if it is one of ours.
        stores: by operator id, the stores of our operators.
        sources: by operator id, the names of the sources whose offsets are operator state.
    """

    found: FoundCheckpoint
    properties: CheckpointProperties | None = None
    batch: SparkBatch | None = None
    stores: Mapping[bytes, StoreState] = field(default_factory=dict)
    sources: Mapping[bytes, str] = field(default_factory=dict)

    @classmethod
    def of(cls, found: FoundCheckpoint) -> Inspection:
        """The inspection of a checkpoint."""
        properties = decode(found.metadata.properties)
        batch = _batch(found)
        if batch is None:
            return cls(found, properties)
        stores = {operator_id_of(batch.query_id, f"{s.operator_id}/{s.store}"): s for s in batch.stores}
        sources = {operator_id_of(batch.query_id, f"source/{i}"): name for i, name in enumerate(batch.sources)}
        return cls(found, properties, batch, stores, sources)

    def to_json(self) -> JsonObject:
        """Everything in the metadata.

        Objects of the model carry their class as `type`. Bytes are base64; the payload of a master state is JSON if it
        is JSON. Subtask states are a list with the `index` of each.
        """
        metadata = self.found.metadata
        return {
            "path": self.found.path,
            "size": self.found.size,
            "version": metadata.version,
            "checkpoint_id": metadata.checkpoint_id,
            "record": describe_record(self.found.record) if self.found.record else None,
            "required_release": describe_required_release(metadata),
            "properties": describe_properties(self.properties),
            "master_states": [_master_state(state) for state in metadata.master_states],
            "operator_states": [_operator(self, operator) for operator in metadata.operator_states],
        }

    def name_of(self, operator: OperatorState) -> str | None:
        """A readable name; None for Flink's operators, whose names these versions of the metadata do not store."""
        if (store := self.stores.get(operator.operator_id)) is not None:
            return f"{store.name} {store.operator_id}/{store.store}"
        if (source := self.sources.get(operator.operator_id)) is not None:
            return f"source {source}"
        return None

    def state_size_of(self, operator: OperatorState) -> int:
        """Bytes of an operator's state. Our segments share files, which the handles would count repeatedly."""
        store = self.stores.get(operator.operator_id)
        return operator.state_size if store is None else int(store.segments.sizes.sum())

    def segments_of(self, operator: OperatorState, subtask: int) -> list[Segment]:
        """The chain of a subtask of one of our stores, oldest first; empty if it is none."""
        store = self.stores.get(operator.operator_id)
        if store is None or subtask >= store.parallelism:
            return []
        table = store.segments
        first = int(table.counts[:subtask].sum())
        chain = slice(first, first + int(table.counts[subtask]))
        columns = (table.is_base[chain].tolist(), table.versions[chain].tolist(), table.sizes[chain].tolist())
        return [Segment(*segment) for segment in zip(*columns, strict=True)]


def _batch(found: FoundCheckpoint) -> SparkBatch | None:
    try:
        return spark_batch_of(found.metadata)
    except CheckpointError:
        # Another program uses the name for something else: its payload is shown as it is.
        return None


def _master_state(state: MasterState) -> JsonObject:
    described: JsonObject = {"name": state.name, "version": state.version, "size": len(state.payload)}
    decoded = decoded_payload(state.payload)
    if decoded is None:
        return described | {"payload_base64": base64_text(state.payload)}
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
        "coordinator_state": value_json(operator.coordinator_state),
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
    described: JsonObject = {"index": index, **object_json(subtask)}
    store = inspection.stores.get(operator.operator_id)
    if store is not None and index < store.parallelism:
        segments = inspection.segments_of(operator, index)
        described |= {
            "rows": store.rows[index],
            "ckpt_id": store.state_ids[index],
            "segments": [
                {"kind": "base" if s.is_base else "delta", "version": s.version, "size": s.size} for s in segments
            ],
        }
    return described
