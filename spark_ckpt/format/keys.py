"""Keys of stores and subtasks, and the filter of a partition's rows."""

from __future__ import annotations

from typing import NamedTuple


class StoreKey(NamedTuple):
    """A store of an operator."""

    operator_id: int
    store: str

    def __str__(self) -> str:
        return f"operator {self.operator_id}, store {self.store}"


class SubtaskKey(NamedTuple):
    """A store of a subtask: what acknowledges."""

    operator_id: int
    store: str
    partition: int

    @property
    def of_operator(self) -> StoreKey:
        """The store without the subtask."""
        return StoreKey(self.operator_id, self.store)

    def __str__(self) -> str:
        return f"operator {self.operator_id}, store {self.store}, partition {self.partition}"


class PartitionFilter(NamedTuple):
    """Filter of a segment's rows: those that Spark's hash sends to one of these partitions count.

    A rescale to a parallelism that does not divide the number of key groups makes several subtasks read the same key
    groups. Each takes its own rows of them.

    Args:
        parallelism: number of partitions that the hash is taken modulo of.
        partitions: ascending.
    """

    parallelism: int
    partitions: tuple[int, ...]
