"""Stores of an import or export, for its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_ckpt.migrate.state_jobs import DescribedStore, FamilyDigest


@dataclass(frozen=True, slots=True)
class TransferredStore:
    """A store of an import or export, or of its dry run.

    Args:
        operator_id: Spark's number of the operator.
        name: Spark's short name of it.
        store: name of the store.
        partitions: number of its partitions.
        rows: number of keys; None after the dry run of an import.
        size: bytes of the base snapshots; None after a dry run or an export.
        families: rows by column family; those of a list count one by one. None after a dry run.
    """

    operator_id: int
    name: str
    store: str
    partitions: int
    rows: int | None
    size: int | None
    families: Mapping[str, int | None]

    @classmethod
    def of(
        cls,
        described: DescribedStore,
        partitions: Iterable[Sequence[FamilyDigest]] | None,
        rows: int | None,
        size: int | None,
    ) -> TransferredStore:
        """A store after a transfer.

        Args:
            described: the store.
            partitions: digests of its partitions; None after a dry run.
            rows: number of keys.
            size: bytes written.
        """
        counts = Counter[str]()
        for families in partitions or ():
            counts.update({family.name: family.rows for family in families})
        return cls(
            described.operator_id,
            described.name,
            described.store,
            described.partitions,
            rows,
            size,
            {name: None if partitions is None else counts[name] for name in described.families},
        )
