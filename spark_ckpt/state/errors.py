"""Errors of reading state without Spark."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.errors import SparkCkptError


class StateNotFoundError(SparkCkptError, LookupError):
    """The checkpoint has no such operator, store or state variable, or it has several and none was named.

    Attributes:
        location: the checkpoint location.
        available: what there is, as text to choose from.
    """

    def __init__(self, location: str, reason: str, available: Sequence[str]) -> None:
        super().__init__(f"{location}: {reason}; there are {', '.join(available) or 'none'}")
        self.location = location
        self.available = tuple(available)


class StateRowError(SparkCkptError, ValueError):
    """A row that is no UnsafeRow of its schema, in a block whose checksum is right.

    Attributes:
        path: the state file.
        offset: byte position in it of what is wrong.
        store: the store, for a person.
        key_group: the key group.
        reason: what is wrong.
    """

    def __init__(self, path: str, offset: int, store: str, key_group: int, reason: str) -> None:
        super().__init__(
            f"{path}: {reason} (byte {offset}, key group {key_group} of {store}). The block is as it was written, so "
            "the row does not go with the schema in Spark's files: see that state/ and ckpt/ are of one location"
        )
        self.path = path
        self.offset = offset
        self.store = store
        self.key_group = key_group
        self.reason = reason


class UnsupportedStateError(SparkCkptError):
    """State that can be read with Spark only.

    Attributes:
        store: the store, for a person.
    """

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store}: {reason}. Read it with Spark: spark.read.format('statestore')")
        self.store = store


class FilterError(SparkCkptError, ValueError):
    """A condition on rows that cannot be understood, or names a column that there is not.

    Attributes:
        text: the condition.
        position: of the character where it goes wrong, from 0.
    """

    def __init__(self, text: str, position: int, reason: str) -> None:
        super().__init__(f"{text}: {reason} (character {position + 1})")
        self.text = text
        self.position = position
