"""Assignment of a checkpoint's state to another number of partitions. No state file is read or changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_ckpt.checkpoint.batch import SparkBatch
from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.checkpoint.load import CheckpointState
from spark_ckpt.checkpoint.publish import StateFile, inline_state_in_file, with_chains
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.progress import Progress
from spark_ckpt.rescaling.errors import RescaleRefusedError
from spark_ckpt.rescaling.plan import RescalePlan, runs_alone
from spark_ckpt.rescaling.reassign import reassign
from spark_ckpt.rescaling.size import RescaleSize
from spark_ckpt.spark_files.schemas import read_schema
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True)
class Assignment:
    """State of a checkpoint by the new partitions.

    Args:
        parent: the checkpoint.
        plan: the rescale.
        alone: stores of operators that run as one task.
        table: chains of the new subtasks.
        inline: file with the state from inside the `_metadata` of the checkpoint, which `table` refers to. It must be
            written before any use of the table; None if all state is in files already.
        size: size of a checkpoint by number of partitions.
    """

    parent: CheckpointState
    plan: RescalePlan
    alone: frozenset[StoreKey]
    table: ChainTable
    inline: StateFile | None
    size: RescaleSize

    @property
    def batch(self) -> SparkBatch:
        """Description of the checkpoint's batch."""
        assert self.parent.batch is not None
        return self.parent.batch

    @property
    def assigned_batch(self) -> SparkBatch:
        """Description of the batch with the new partitions."""
        return with_chains(self.batch, self.table)

    def state(self) -> CheckpointState:
        """The checkpoint with the new partitions, in memory."""
        return replace(self.parent, batch=self.assigned_batch, table=self.table, assigned=True)


def assign(
    storage: Storage,
    parent: CheckpointState,
    plan: RescalePlan,
    *,
    repeatable: bool = False,
    way_back: str = "",
    progress: Progress = lambda done, of: None,
) -> Assignment:
    """Assigns the state of a checkpoint to the partitions of a plan. The checkpoint itself does not change.

    Args:
        storage: storage of the checkpoint location, for Spark's schemas.
        parent: the checkpoint, with its description.
        plan: the rescale.
        repeatable: True if another process must be able to assign the same states, with the same ids.
        way_back: more text for a refusal.
        progress: called after each store with the number of stores done and the total.

    Raises:
        RescaleRefusedError: the partitions would share so much state that the checkpoint comes near the limit of
            readers.
        StateSchemaError, StorageError: a schema cannot be read.
    """
    batch = parent.batch
    assert batch is not None
    factors = batch.key_group_factors
    alone = frozenset(
        store.key
        for store in batch.stores
        if runs_alone(store, plan.before, lambda key: len(read_schema(storage, key)[0].key.types))
    )
    chains = {key: [_with_own_inline_state(chain) for chain in of_store] for key, of_store in parent.table.items()}
    inline = inline_state_in_file(chains)
    size = RescaleSize(chains, alone, factors)
    if not size.fits(plan.after):
        raise RescaleRefusedError(storage.location, plan.after, _too_large(size, plan.after) + way_back)
    table: ChainTable = {}
    for key, of_store in chains.items():
        table[key] = reassign(of_store, len(of_store) if key in alone else plan.after, factors, repeatable=repeatable)
        progress(len(table), len(chains))
    return Assignment(parent, plan, alone, table, inline, size)


def _with_own_inline_state(chain: Chain) -> Chain:
    """Copy whose inline segments can be placed in a file."""
    if not chain.inline_bytes:
        return chain
    entries = tuple(entry.copied() if entry.path is None else entry for entry in chain.entries)
    return Chain(chain.state_id, chain.rows, entries)


def _too_large(size: RescaleSize, partitions: int) -> str:
    numbers = " or ".join(map(str, size.nearest(partitions)))
    once = " and ".join(map(str, size.min_reads(partitions)))
    return (
        f"every block of state would belong to {size.reads(partitions):,} partitions, and the checkpoint would have "
        f"more segments than a reader accepts. The nearest numbers that work are {numbers}; {once} read each block once"
    )
