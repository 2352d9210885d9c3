"""State files of the changed query: earlier rows, converted and written as base snapshots."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.evolution.mapping import StoreMapping
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.evolution.store_rewrite import StoreRewrite
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state_writing.bases import write_bases
from spark_ckpt.state_writing.spill import RowSpill
from spark_ckpt.storage import Storage

_log = logging.getLogger(__name__)


class Tasks(Protocol):
    """Rewrites the partitions of a large store at once, elsewhere."""

    def suit(self, rewrite: StoreRewrite) -> bool:
        """True if a store is large enough, and its storage is within reach.

        Raises:
            Exception: that cannot be told.
        """
        ...

    def chains(self, rewrite: StoreRewrite, begins: Callable[[str], None]) -> list[Chain]:
        """Chains of the rewritten store. Calls `begins` with the path of each file, relative to `ckpt`, before any is
        written.

        Raises:
            Exception: any failure of a task.
        """
        ...


class StateRewriter:
    """Writer of the state of a changed query.

    Args:
        storage: storage of the checkpoint location.
        catalog: state of the earlier query.
        version: version of the new state.
        partitions: number of partitions.
        step: called after each store.
        tasks: rewrites large stores; None to write all in this process.
    """

    def __init__(
        self,
        storage: Storage,
        catalog: StateCatalog,
        version: int,
        partitions: int,
        step: Callable[[], None],
        tasks: Tasks | None = None,
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._version = version
        self._partitions = partitions
        self._step = step
        self._tasks = tasks
        self.files: list[str] = []
        """Files that it has begun to write, relative to the location."""

    def chains(self, mapping: StoreMapping) -> list[Chain]:
        """Chains of a store, each with a state id of its own.

        Raises:
            EvolutionValueError: a value does not fit into its column.
            RepeatedKeyError: keys that become equal have no merge.
            KeyGroupTooLargeError: a key group does not fit into a block.
            StorageError: a file cannot be read or written.
        """
        count = 1 if mapping.new.runs_alone else self._partitions
        old = None if mapping.old is None else self._store(mapping.old)
        if old is None:
            made = [Chain(str(uuid.uuid4()), 0) for _ in range(count)]
        elif mapping.keeps_files and len(old.chains) == count:
            made = [Chain(str(uuid.uuid4()), chain.rows, chain.entries) for chain in old.chains]
        else:
            factors = self._catalog.batch.key_group_factors
            made = self._rewritten(StoreRewrite(self._storage, old, mapping, factors, count, self._version))
        self._step()
        return made

    def _store(self, schema: StoreSchema) -> Store:
        return next(store for store in self._catalog.stores if store.state.key == schema.key)

    def _rewritten(self, rewrite: StoreRewrite) -> list[Chain]:
        try:
            if self._tasks is not None and self._tasks.suit(rewrite):
                return self._tasks.chains(rewrite, lambda path: self.files.append(in_location(path)))
        except Exception as e:  # of Spark, or of an executor
            # A value that does not fit is an error here as well, and of a better type.
            _log.warning("the tasks that rewrite %s failed, so the driver does: %s", rewrite.mapping.new.key, e)
        if rewrite.keeps_places:
            # Nothing moves, so that no more than a partition is in memory.
            return self._write(rewrite, (rewrite.tables(partition) for partition in range(rewrite.partitions)))
        with RowSpill(rewrite.partitions, rewrite.factors, list(rewrite.families)) as spill:
            for partition in range(len(rewrite.old.chains)):
                for rows in rewrite.rows(partition):
                    spill.add(rows)
            return self._write(rewrite, ([table] for table in spill.partitions()))

    def _write(self, rewrite: StoreRewrite, partitions: Iterable[Iterable[pa.Table]]) -> list[Chain]:
        families, version = rewrite.families, rewrite.version
        return write_bases(self._storage, partitions, families, version, self.files.append, lambda: None)
