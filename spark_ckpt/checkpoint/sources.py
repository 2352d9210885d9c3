"""Sources of a query in a `_metadata`: their positions after the batch, from operator state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.compose import SOURCE_OFFSETS, operator_id_of
from spark_ckpt.checkpoint.meaning import QueryMeaning
from spark_ckpt.errors import CheckpointError
from spark_ckpt.metadata import (
    ByteStreamStateHandle,
    CheckpointMetadata,
    OperatorState,
    OperatorStreamStateHandle,
)
from spark_ckpt.redaction import redacted
from spark_ckpt.spark_files.source_positions import (
    DeltaPosition,
    KafkaPosition,
    SourcePosition,
    UnknownPosition,
    positions_of,
)

_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class SourceState:
    """Source of a query in a checkpoint.

    Args:
        name: Spark's name of the source: its number in the query, from "0", unless the query names its sources.
        operator_id: id of its operator state.
        positions: its positions after the batch, one per partition; empty before its first offset.
        text: its format and where it reads; None if the checkpoint does not say.
    """

    name: str
    operator_id: bytes
    positions: tuple[SourcePosition, ...] = ()
    text: str | None = None

    @property
    def kind(self) -> str | None:
        """Kind of the source, inferred from the shape of its offset; None before its first offset."""
        return self.positions[0].kind if self.positions else None

    @property
    def title(self) -> str:
        """The source for people: its name, and what it reads as far as that is known."""
        what = self.text or self._shape
        return f"source {self.name}" + (f" ({what})" if what else "")

    @property
    def _shape(self) -> str | None:
        topics = sorted({position.topic for position in self.positions if isinstance(position, KafkaPosition)})
        if topics:
            more = f" and {len(topics) - _MAX_NAMED} more" if len(topics) > _MAX_NAMED else ""
            return f"kafka {', '.join(topics[:_MAX_NAMED])}{more}"
        tables = {position.table_id for position in self.positions if isinstance(position, DeltaPosition)}
        if tables:
            return f"delta table {min(tables)}"
        return None if self.kind == UnknownPosition.kind else self.kind


def sources_of(metadata: CheckpointMetadata, batch: SparkBatch) -> tuple[SourceState, ...]:
    """Sources of a checkpoint, in the order of the query.

    Args:
        metadata: the checkpoint.
        batch: its master state `spark-batch`.
    """
    operators = {operator.operator_id: operator for operator in metadata.operator_states}
    sources, texts = [], _texts(batch)
    for index, name in enumerate(batch.sources):
        operator_id = operator_id_of(batch.query_id, f"source/{index}")
        operator = operators.get(operator_id)
        positions = () if operator is None else tuple(_positions(operator))
        text = texts[index] if index < len(texts) else None
        sources.append(SourceState(name, operator_id, tuple(sorted(positions, key=attrgetter("key"))), text))
    return tuple(sources)


def _texts(batch: SparkBatch) -> Sequence[str]:
    """What the sources read, in the order of the query; empty if the meaning of the state is not known."""
    if batch.meaning is None:
        return ()
    try:
        return [redacted(source.text) for source in QueryMeaning.decode(batch.meaning).sources]
    except CheckpointError:
        return ()  # `verify` reports it


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
