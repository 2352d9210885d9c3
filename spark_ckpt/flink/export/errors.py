"""Errors of writing a savepoint of Flink."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class UnsupportedForFlinkError(SparkCkptError):
    """A type or an operator that cannot be in a savepoint of Flink. Nothing was written.

    Attributes:
        operator: id and uid of the operator.
        state: name of the state; None if the keys or the operator itself are concerned.
        reason: the problem, and the remedy.
    """

    def __init__(self, operator: str, state: str | None, reason: str) -> None:
        where = f"operator {operator}" + ("" if state is None else f", state {state}")
        super().__init__(f"{where}: {reason}")
        self.operator = operator
        self.state = state
        self.reason = reason


class FlinkRowError(SparkCkptError, ValueError):
    """A row that does not fit the serializers of its state. The savepoint has no `_metadata`, so Flink finds none.

    Attributes:
        operator: id and uid of the operator.
        state: name of the state.
        row: number of the row in its state, from 0; None if all rows of a batch are concerned.
        column: name of the column.
        reason: the problem.
    """

    def __init__(self, operator: str, state: str, row: int | None, column: str, reason: str) -> None:
        where = "" if row is None else f", row {row}"
        super().__init__(f"operator {operator}, state {state}{where}, column {column}: {reason}")
        self.operator = operator
        self.state = state
        self.row = row
        self.column = column
        self.reason = reason
