"""Contract of the Spark jobs that read and write the state of a stopped query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spark_ckpt.format.keys import StoreKey
from spark_ckpt.progress import Progress


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state to read: that of the last committed batch of a stopped query.

    Args:
        batch_id: the batch.
        settings: JSON text of its settings in the offset log.
        state_ids: ids in its commit, as Spark writes them; None in checkpoint format 1.
        partitions: number of partitions by operator; those not named have one per directory.
    """

    batch_id: int
    settings: str
    state_ids: Mapping[int, Sequence[Sequence[str]]] | None
    partitions: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DescribedStore:
    """A store of a stateful operator, by Spark's files.

    Args:
        operator_id: Spark's number of the operator.
        name: Spark's short name of it.
        store: name of the store.
        partitions: number of its partitions.
        state_format_version: state format version of a join, else None.
        families: names of the column families.
        has_families: True if a provider needs column families for it.
        state_ids: state id per partition; None in checkpoint format 1.
    """

    operator_id: int
    name: str
    store: str
    partitions: int
    state_format_version: int | None
    families: tuple[str, ...]
    has_families: bool
    state_ids: tuple[str, ...] | None

    @property
    def key(self) -> StoreKey:
        """Key of the store."""
        return StoreKey(self.operator_id, self.store)


@dataclass(frozen=True, slots=True)
class FamilyDigest:
    """Rows of a column family in one partition.

    Args:
        name: name of the family.
        rows: number of rows; those of a list count one by one.
        digest: digest of the rows, independent of the order of keys.
    """

    name: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True, eq=False)
class ImportedPartition:
    """The imported state of one partition of a store.

    Args:
        rows: number of keys.
        path: base snapshot, relative to `ckpt`; None without rows.
        size: its bytes.
        key_groups: uint32, ascending.
        offsets: int64, start of each key group's block.
        families: digests by column family.
    """

    rows: int
    path: str | None
    size: int
    key_groups: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    families: tuple[FamilyDigest, ...]


@dataclass(frozen=True, slots=True)
class ExportedPartition:
    """The exported state of one partition of a store.

    Args:
        state_id: its id; None in checkpoint format 1.
        families: digests by column family.
    """

    state_id: str | None
    families: tuple[FamilyDigest, ...]


class StateJobs(Protocol):
    """Spark jobs on the state of one location."""

    @property
    def spark_version(self) -> str:
        """Version of Spark."""
        ...

    def stores(self, source: SourceState) -> Sequence[DescribedStore]:
        """The stores of the location, by operator and name. Reads no state.

        Raises:
            StateTransferError: Spark's metadata or schemas are missing or damaged.
        """
        ...

    def import_state(
        self, source: SourceState, target: str, key_group_factors: Sequence[int], progress: Progress
    ) -> Mapping[StoreKey, Sequence[ImportedPartition]]:
        """Writes the state as base snapshots below `ckpt/shared` of a location, reads them back, and compares.

        Args:
            source: the state.
            target: the location to write to.
            key_group_factors: numbering of the key groups.
            progress: called with the number of finished tasks and the total.

        Raises:
            StateTransferError: the state cannot be read, a row is in another partition than Spark's hash says, or a
                written row differs from the one read.
        """
        ...

    def export_state(
        self, source: SourceState, target: str, provider: str, checkpoint_format: int, progress: Progress
    ) -> Mapping[StoreKey, Sequence[ExportedPartition]]:
        """Writes the state below `state` of a location through a provider of Spark, reads it back, and compares.

        Args:
            source: the state.
            target: the location to write to.
            provider: class of the provider.
            checkpoint_format: format of Spark's state stores in the target, 1 or 2.
            progress: called with the number of finished tasks and the total.

        Raises:
            StateTransferError: the state cannot be read or written, or a written row differs from the one read.
        """
        ...
