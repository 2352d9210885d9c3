"""Result of a bootstrap."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Rows of one state.

    Args:
        operator_id: Spark's number of the operator.
        operator: Spark's short name of the operator.
        name: name of the state: that of a state variable, such as `eventTimers` for timers, or `default`.
        rows: number of rows; 0 if it begins empty.
    """

    operator_id: int
    operator: str
    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class WrittenState:
    """Result of `write_state`.

    Args:
        location: the checkpoint location.
        query_id: id of the new query.
        checkpoint_id: its first checkpoint.
        states: the states of the query.
        state_bytes: bytes of the state.
    """

    location: str
    query_id: str
    checkpoint_id: int
    states: tuple[WrittenRows, ...]
    state_bytes: int
