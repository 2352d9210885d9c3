"""What `inspect` tells of a checkpoint: its metadata, and the names that our master state gives to what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_ckpt.coordinator.batch_state import SparkBatch, StoreState
from spark_ckpt.coordinator.compose import operator_id_of, spark_batch_of
from spark_ckpt.errors import CheckpointError
from spark_ckpt.locations.location import FoundCheckpoint
from spark_ckpt.metadata import OperatorState
from spark_ckpt.metadata.properties import CheckpointProperties, decode


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a subtask's chain.

    Args:
        is_base: base or delta.
        version: version of the state that it is or leads to.
        size: bytes.
    """

    is_base: bool
    version: int
    size: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """A checkpoint and what we know of it.

    Args:
        found: the checkpoint.
        properties: how Flink treats it, if the file says so.
        batch: what Spark knows of it, if it is one of ours.
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
        """What there is to tell of a checkpoint."""
        properties = decode(found.metadata.properties)
        batch = _batch(found)
        if batch is None:
            return cls(found, properties)
        stores = {operator_id_of(batch.query_id, f"{s.operator_id}/{s.store}"): s for s in batch.stores}
        sources = {operator_id_of(batch.query_id, f"source/{i}"): name for i, name in enumerate(batch.sources)}
        return cls(found, properties, batch, stores, sources)

    def name_of(self, operator: OperatorState) -> str | None:
        """A name for a person, or None: Flink's metadata of these versions has none."""
        if (store := self.stores.get(operator.operator_id)) is not None:
            return f"{store.name} {store.operator_id}/{store.store}"
        if (source := self.sources.get(operator.operator_id)) is not None:
            return f"source {source}"
        return None

    def state_size_of(self, operator: OperatorState) -> int:
        """Bytes of an operator's state. Segments of ours share files, which the handles would count again and again."""
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
        # Flink's own, or of a program that uses the name for something else: then its payload is shown as it is.
        return None
