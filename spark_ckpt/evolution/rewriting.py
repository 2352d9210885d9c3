"""State files of the changed query: earlier rows, converted and written as base snapshots."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa

from spark_ckpt.checkpoint.chains import Chain
from spark_ckpt.evolution.columns import FamilyMapping
from spark_ckpt.evolution.conversion import combined, converted, new_keys
from spark_ckpt.evolution.mapping import StoreMapping
from spark_ckpt.evolution.schemas import StoreSchema
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import split_ranges
from spark_ckpt.state.catalog import StateCatalog, Store
from spark_ckpt.state.grouping import grouping_key
from spark_ckpt.state.merge import merge
from spark_ckpt.state.partition_hash import grouping_hashes
from spark_ckpt.state.read import decode_merged, read_view
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state.views import view_of
from spark_ckpt.state_writing.bases import WrittenFamily, write_bases
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.state_writing.placement import PLACED, Placement, in_order
from spark_ckpt.state_writing.spill import RowSpill
from spark_ckpt.storage import Storage


class StateRewriter:
    """Writer of the state of a changed query.

    Args:
        storage: storage of the checkpoint location.
        catalog: state of the earlier query.
        version: version of the new state.
        partitions: number of partitions.
        step: called after each store.
    """

    def __init__(
        self, storage: Storage, catalog: StateCatalog, version: int, partitions: int, step: Callable[[], None]
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._version = version
        self._partitions = partitions
        self._step = step
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
            made = self._rewritten(mapping, old, count)
        self._step()
        return made

    def _store(self, schema: StoreSchema) -> Store:
        return next(store for store in self._catalog.stores if store.state.key == schema.key)

    def _rewritten(self, mapping: StoreMapping, old: Store, count: int) -> list[Chain]:
        store = mapping.new.as_store()
        families = {
            each.new.name: WrittenFamily(
                each.new,
                view_of(store, each.new).lists,
                combine=partial(combined, merges=each.merges, kind=each.new.value) if each.merges else None,
            )
            for each in mapping.families
        }
        if count == len(old.chains) and all(each.keeps_places for each in mapping.families):
            # Nothing moves, so that no more than a partition is in memory.
            partitions = (self._tables(mapping, old, partition, list(families)) for partition in range(count))
            return self._write(partitions, families)
        with RowSpill(count, self._factors, list(families)) as spill:
            for each in mapping.families:
                for partition in range(len(old.chains)):
                    for key_groups in self._ranges(old, partition):
                        spill.add(self._rows(mapping, old, each, partition, key_groups))
            return self._write(([table] for table in spill.partitions()), families)

    def _write(self, partitions: Iterable[Iterable[pa.Table]], families: Mapping[str, WrittenFamily]) -> list[Chain]:
        return write_bases(self._storage, partitions, families, self._version, self.files.append, lambda: None)

    @property
    def _factors(self) -> tuple[int, ...]:
        return self._catalog.batch.key_group_factors

    def _ranges(self, old: Store, partition: int) -> Iterator[KeyGroupRange]:
        """Ranges of key groups of a partition that are read at a time."""
        ranges = overlapping_ranges(partition, len(old.chains), self._factors)
        yield from split_ranges(old.chains[partition], ranges)

    def _tables(self, mapping: StoreMapping, old: Store, partition: int, families: list[str]) -> Iterator[pa.Table]:
        """Placed rows of a partition."""
        placement = Placement(len(old.chains), self._factors, families)
        for key_groups in self._ranges(old, partition):
            rows = [self._rows(mapping, old, each, partition, key_groups) for each in mapping.families]
            yield in_order(pa.Table.from_batches([placement.placed(each) for each in rows], PLACED))

    def _rows(
        self, mapping: StoreMapping, old: Store, each: FamilyMapping, partition: int, key_groups: KeyGroupRange
    ) -> FamilyRows:
        view = view_of(old, each.old)
        places = grouping_key(old, each.old), grouping_key(mapping.new.as_store(), each.new)
        title = f"{mapping.new.key}, {each.new.name}"
        merged = merge(read_view(self._catalog, view, old.chains[partition], key_groups))
        keys, values = decode_merged(view, merged)
        made, grouping = new_keys(keys, each, *places, title)
        kind = each.new.key if places[1] is None else places[1].kind
        hashes = grouping_hashes(kind, encode_rows(kind, grouping))
        return FamilyRows(
            each.new,
            encode_rows(each.new.key, made),
            encode_rows(each.new.value, converted(values, each.value, each.new.value, title)),
            hashes,
            view.lists,
        )
