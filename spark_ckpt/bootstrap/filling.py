"""State files of a new query, and the location with them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_ckpt.bootstrap.new_location import NewQuery, filling, write_query
from spark_ckpt.bootstrap.result import WrittenRows, WrittenState
from spark_ckpt.bootstrap.row_sources import RowSource, table_of
from spark_ckpt.bootstrap.rows import encoded_rows
from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.clock import Clock
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.progress import Progress
from spark_ckpt.state_writing.bases import write_bases
from spark_ckpt.state_writing.spill import RowSpill
from spark_ckpt.state_writing.targets import Target, families_of, targets_in
from spark_ckpt.storage import Storage


def fill_location(
    storage: Storage,
    query: NewQuery,
    chosen: Mapping[str, tuple[Target, RowSource]],
    clock: Clock,
    progress: Progress = lambda done, of: None,
) -> WrittenState:
    """Fills an empty location with the state of a new query.

    Args:
        storage: storage of the location.
        query: the query.
        chosen: states with rows, by their names with the operator; others begin empty.
        clock: source of time.
        progress: called with the number of states written and the total.

    Raises:
        SparkCkptError: as `spark_ckpt.write_state` raises.
    """
    writing = _Writing(storage, query, chosen, progress)
    with filling(storage):
        record, query_id = write_query(storage, query, writing.chains, clock)
    return WrittenState(storage.location, query_id, record.id, tuple(writing.written), record.state_bytes)


@dataclass(slots=True)
class _Writing:
    """Writer of the state of a query, one store after the other."""

    storage: Storage
    query: NewQuery
    chosen: Mapping[str, tuple[Target, RowSource]]
    progress: Progress
    written: list[WrittenRows] = field(default_factory=list)

    def chains(self, store: StoreSchema) -> list[Chain]:
        """Chains of a store, one for each partition."""
        targets = list(targets_in(store.as_store(), store.with_ttl))
        count = self.query.parallelism(store)
        families = families_of(targets)
        if not any(target.title in self.chosen for target in targets):
            for target in targets:
                self._add(target, 0)
            return [Chain(str(uuid.uuid4()), 0) for _ in range(count)]
        with RowSpill(count, self.query.key_group_factors, list(families)) as spill:
            for target in targets:
                self._add(target, self._spill(target, spill))
            partitions = ([table] for table in spill.partitions())
            return write_bases(self.storage, partitions, families, 1, lambda name: None, lambda: None)

    def _spill(self, target: Target, spill: RowSpill) -> int:
        if target.title not in self.chosen:
            return 0
        table = table_of(self.chosen[target.title][1], target)
        for rows in encoded_rows(target, table):
            spill.add(rows)
        return len(table)

    def _add(self, target: Target, rows: int) -> None:
        state = target.store.state
        self.written.append(WrittenRows(target.operator_id, state.name, target.name, rows))
        if target.title in self.chosen:
            done = sum(f"{each.operator_id}/{each.name}" in self.chosen for each in self.written)
            self.progress(done, len(self.chosen))
