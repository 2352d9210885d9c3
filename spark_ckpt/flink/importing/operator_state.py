"""Operator state of a Flink checkpoint: what an import of keyed state leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_ckpt import metadata as m


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """State of an operator that is not keyed.

    Args:
        operator: uid, name or id of the operator.
        states: names of its list and broadcast states; `raw` and `coordinator` for others.
    """

    operator: str
    states: tuple[str, ...]


def operator_title(operator: m.OperatorState) -> str:
    """Uid or name of an operator if they are known, else its id."""
    return operator.uid or operator.name or operator.operator_id.hex()


def left_behind(checkpoint: m.CheckpointMetadata) -> tuple[LeftBehind, ...]:
    """Operators with operator state: positions of sources, transactions of sinks, broadcast states."""
    found = [(operator, sorted(set(_names(operator)))) for operator in checkpoint.operator_states]
    return tuple(LeftBehind(operator_title(operator), tuple(names)) for operator, names in found if names)


def _names(operator: m.OperatorState) -> Iterator[str]:
    if operator.coordinator_state is not None:
        yield "coordinator"
    for subtask in operator.subtask_states.values():
        if subtask.raw_operator_state is not None:
            yield "raw"
        if subtask.managed_operator_state is not None:
            partitions = subtask.managed_operator_state.state_name_to_partition_offsets
            yield from (name for name, info in partitions.items() if info.offsets)
