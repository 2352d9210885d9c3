"""Sources of a query in a `_metadata`: their positions after the batch, from operator state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.compose import SOURCE_OFFSETS, operator_id_of
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    CheckpointMetadata,
    OperatorState,
    OperatorStreamStateHandle,
)
from spark_ckpt.spark_files.source_positions import SourcePosition, positions_of


@dataclass(frozen=True, slots=True)
class SourceState:
    """Source of a query in a checkpoint.

    Args:
        name: Spark's name of the source: its number in the query, from "0", unless the query names its sources.
        operator_id: id of its operator state.
        positions: its positions after the batch, one per partition; empty before its first offset.
    """

    name: str
    operator_id: bytes
    positions: tuple[SourcePosition, ...] = ()

    @property
    def kind(self) -> str | None:
        """Kind of the source, inferred from the shape of its offset; None before its first offset."""
        return self.positions[0].kind if self.positions else None


def sources_of(metadata: CheckpointMetadata, batch: SparkBatch) -> tuple[SourceState, ...]:
    """Sources of a checkpoint, in the order of the query.

    Args:
        metadata: the checkpoint.
        batch: its master state `spark-batch`.
    """
    operators = {operator.operator_id: operator for operator in metadata.operator_states}
    sources = []
    for index, name in enumerate(batch.sources):
        operator_id = operator_id_of(batch.query_id, f"source/{index}")
        operator = operators.get(operator_id)
        positions = () if operator is None else tuple(_positions(operator))
        sources.append(SourceState(name, operator_id, tuple(sorted(positions, key=attrgetter("key")))))
    return tuple(sources)


def _positions(operator: OperatorState) -> Iterator[SourcePosition]:
    for subtask in operator.subtask_states.values():
        handle = subtask.managed_operator_state
        if not isinstance(handle, OperatorStreamStateHandle):
            continue
        stream = handle.delegate_state_handle
        elements = handle.state_name_to_partition_offsets.get(SOURCE_OFFSETS)
        if elements is not None and isinstance(stream, ByteStreamStateHandle):
            starts = sorted(elements.offsets)
            for start, end in zip(starts, [*starts[1:], len(stream.data)], strict=True):
                yield from positions_of(stream.data[start:end].decode(errors="replace"))
