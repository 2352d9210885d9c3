"""Keys of stores and subtasks, and the row filter of a partition."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from spark_ckpt.format.integers import Natural


class StoreKey(NamedTuple):
    """Key of a store of an operator."""

    operator_id: int
    store: str

    def __str__(self) -> str:
        return f"operator {self.operator_id}, store {self.store}"


class SubtaskKey(NamedTuple):
    """Key of a store of a subtask: the unit that acknowledges a checkpoint.

    Args:
        operator_id: Spark's number of the operator in the query.
        store: name of the store.
        partition: partition of the store.
    """

    operator_id: Natural
    store: str
    partition: Natural

    @property
    def of_operator(self) -> StoreKey:
        """Key of the store, without the partition."""
        return _store_key(self.operator_id, self.store)

    def __str__(self) -> str:
        return f"operator {self.operator_id}, store {self.store}, partition {self.partition}"


# Asked for several times per ack, of few stores.
@lru_cache(maxsize=1024)
def _store_key(operator_id: int, store: str) -> StoreKey:
    return StoreKey(operator_id, store)


class PartitionFilter(NamedTuple):
    """Filter of a segment's rows: keeps those whose Spark hash maps to one of the partitions.

    After a rescale to a parallelism that does not divide the number of key groups, several subtasks read the same key
    groups. Each keeps only its own rows.

    Args:
        parallelism: number of partitions; the modulus of the hash.
        partitions: partitions to keep, ascending.
    """

    parallelism: Natural
    partitions: tuple[Natural, ...]
