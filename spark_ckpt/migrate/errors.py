"""Errors of imports and exports."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class TransferRefusedError(SparkCkptError):
    """The state of a location cannot be imported or exported, or an import cannot be undone. Nothing was switched.

    Attributes:
        location: the checkpoint location.
        reason: cause and remedy.
    """

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"{location}: {reason}")
        self.location = location
        self.reason = reason


class QueryMayRunError(SparkCkptError):
    """A query without claims has written a short time ago. Nothing was changed.

    Attributes:
        location: the checkpoint location.
        path: its newest file.
        age_seconds: age of that file.
    """

    def __init__(self, location: str, path: str, age_seconds: int, quiet_seconds: int) -> None:
        super().__init__(
            f"{location}: {path} was written {age_seconds} s ago, so the query may be running. Its provider leaves no "
            f"other sign. Stop the query, wait until {quiet_seconds} s have passed, and run the command again. If you "
            "are sure that the query is not running, pass --force"
        )
        self.location = location
        self.path = path
        self.age_seconds = age_seconds


class StateTransferError(SparkCkptError):
    """A Spark job that reads or writes state has failed. Nothing was switched.

    Attributes:
        kind: what failed: `SourceStateError`, `TargetStateError`, `RowPartitionError`, `ImportedStateError`,
            `ExportedStateError`, `StateSchemaError`, `StateIdMismatchError` or `JobFailedError`.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"[{kind}] {message}")
        self.kind = kind
