"""Errors of edits and erasures."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class EditRefusedError(SparkCkptError):
    """The state of a query cannot be changed as requested. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        reason: cause and remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: the state cannot be changed: {reason}")
        self.location = location
        self.reason = reason


class EditRowError(SparkCkptError, ValueError):
    """A row that the user gave does not fit the state. Nothing was changed.

    Attributes:
        column: the column, such as `key.user`.
        row: number of the row, from 0; None if no row has such a column.
        reason: the mismatch.
    """

    def __init__(self, column: str, row: int | None, reason: str) -> None:
        super().__init__(f"column {column}{'' if row is None else f', row {row}'}: {reason}")
        self.column = column
        self.row = row
        self.reason = reason
