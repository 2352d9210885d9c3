"""Errors of written state."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class RepeatedKeyError(SparkCkptError):
    """Two rows have the same key.

    Attributes:
        family: name of the column family.
        key: the key, as text.
    """

    def __init__(self, family: str, key: str) -> None:
        super().__init__(f"two rows of {family} have the key {key}")
        self.family = family
        self.key = key
