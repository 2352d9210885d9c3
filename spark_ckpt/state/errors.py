"""Errors of reading state without Spark."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.errors import SparkCkptError


class StateNotFoundError(SparkCkptError, LookupError):
    """The checkpoint has no such operator, store or state variable, or has several and none is selected.

    Attributes:
        location: the checkpoint location.
        available: the choices, as text.
    """

    def __init__(self, location: str, reason: str, available: Sequence[str]) -> None:
        super().__init__(f"{location}: {reason}; available: {', '.join(available) or 'none'}")
        self.location = location
        self.available = tuple(available)


class StateRowError(SparkCkptError, ValueError):
    """A row does not match its schema, though the checksum of its block is correct.

    Attributes:
        path: the state file.
        offset: byte position in the file.
        store: the store, as text.
        key_group: the key group.
        reason: the mismatch.
    """

    def __init__(self, path: str, offset: int, store: str, key_group: int, reason: str) -> None:
        super().__init__(
            f"{path}: {reason} (byte {offset}, key group {key_group} of {store}). The checksum of the block is "
            "correct, so the row does not match Spark's schema files: check that state/ and ckpt/ belong together"
        )
        self.path = path
        self.offset = offset
        self.store = store
        self.key_group = key_group
        self.reason = reason


class UnsupportedStateError(SparkCkptError):
    """State that only Spark can read.

    Attributes:
        store: the store, as text.
    """

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store}: {reason}. Read it with Spark: spark.read.format('statestore')")
        self.store = store


class UnsupportedFlinkStateError(SparkCkptError):
    """State of Flink that cannot be read as rows.

    Attributes:
        state: the state, or the id of its operator.
    """

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(f"{state}: {reason}")
        self.state = state


class FilterError(SparkCkptError, ValueError):
    """A condition on rows has a syntax error or an unknown column.

    Attributes:
        text: the condition.
        position: index of the offending character, from 0.
    """

    def __init__(self, text: str, position: int, reason: str) -> None:
        super().__init__(f"{text}: {reason} (character {position + 1})")
        self.text = text
        self.position = position
