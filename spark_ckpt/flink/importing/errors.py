"""Errors of an import of Flink's state. All of them leave the query's location as it was."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.errors import SparkCkptError


class FlinkImportRefusedError(SparkCkptError):
    """State of Flink cannot be imported into a location. Nothing was changed.

    Attributes:
        location: the checkpoint location, or the one of Flink.
        reason: cause and remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location
        self.reason = reason


class FlinkStateNotMappedError(SparkCkptError):
    """A state of Flink has no place in the query, or several. Nothing was changed.

    Attributes:
        state: the state, with its operator.
        available: state variables of the query that could take it.
    """

    def __init__(self, state: str, reason: str, available: Sequence[str]) -> None:
        super().__init__(
            f"{state}: {reason}. Choose a state variable with --state STATE=VARIABLE, or leave the state behind with "
            f"--ignore STATE; available: {', '.join(available) or 'none'}"
        )
        self.state = state
        self.available = tuple(available)


class FlinkTypeError(SparkCkptError):
    """A column of a Flink state does not fit the one of the query. Nothing was changed.

    Attributes:
        state: the state.
        column: path of the column.
        flink_type: Arrow type of Flink's values.
        spark_type: Arrow type of the query's values.
    """

    def __init__(self, state: str, column: str, flink_type: str, spark_type: str, reason: str = "") -> None:
        detail = f": {reason}" if reason else ""
        super().__init__(
            f"state {state}, column {column}: Flink's {flink_type} does not fit the query's {spark_type}{detail}. "
            "Change the query's types and start it with a new checkpoint location, or leave the state behind with "
            "--ignore STATE"
        )
        self.state = state
        self.column = column
        self.flink_type = flink_type
        self.spark_type = spark_type


class FlinkImportRowError(SparkCkptError):
    """A row of Flink's state has a value that the query's state cannot have. Nothing was changed.

    Attributes:
        state: the state.
        column: path of the column.
        key: key of the row, as text.
        reason: what is wrong with the value.
    """

    def __init__(self, state: str, column: str, key: str, reason: str) -> None:
        super().__init__(
            f"state {state}, column {column}, key {key}: {reason}. Change the query's types or Flink's state, or leave "
            "the state behind with --ignore STATE"
        )
        self.state = state
        self.column = column
        self.key = key
        self.reason = reason


class FlinkImportCheckError(SparkCkptError):
    """The rows that an import has written differ from those of Flink. The query does not see them.

    Attributes:
        variable: the state variable.
        rows: rows of Flink.
        found: rows read back.
    """

    def __init__(self, variable: str, rows: int, found: int) -> None:
        super().__init__(
            f"{variable}: {found} rows were read back, {rows} came from Flink, and they are not the same. The query "
            "was not changed. Run the command again; if it fails again, report it with the types of the state"
        )
        self.variable = variable
        self.rows = rows
        self.found = found
