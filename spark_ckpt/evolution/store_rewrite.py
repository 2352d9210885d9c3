"""Rows of one store of a changed query, a partition at a time: in the driver, or in a Spark task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from spark_ckpt.evolution.columns import FamilyMapping
from spark_ckpt.evolution.conversion import combined, converted, new_keys
from spark_ckpt.evolution.mapping import StoreMapping
from spark_ckpt.format.key_groups import overlapping_ranges
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.state.blocks import split_ranges
from spark_ckpt.state.catalog import Store
from spark_ckpt.state.grouping import grouping_key
from spark_ckpt.state.merge import merge
from spark_ckpt.state.partition_hash import grouping_hashes
from spark_ckpt.state.read import decode_merged, read_view
from spark_ckpt.state.unsafe_row_encoder import encode_rows
from spark_ckpt.state.views import view_of
from spark_ckpt.state_writing.bases import WrittenFamily
from spark_ckpt.state_writing.family_rows import FamilyRows
from spark_ckpt.state_writing.placement import PLACED, Placement, in_order
from spark_ckpt.storage import Storage


@dataclass(frozen=True, slots=True, eq=False)
class StoreRewrite:
    """How a store is rewritten. Reads rows when asked for them, and writes nothing.

    Args:
        storage: storage of the checkpoint location.
        old: the store of the earlier query.
        mapping: its mapping to that of the changed query.
        factors: numbering of the key groups.
        partitions: number of partitions of the changed query.
        version: version of the new state.
    """

    storage: Storage
    old: Store
    mapping: StoreMapping
    factors: tuple[int, ...]
    partitions: int
    version: int

    @property
    def families(self) -> Mapping[str, WrittenFamily]:
        """Column families of the changed query, by name, in the order of sections."""
        store = self.mapping.new.as_store()
        return {
            each.new.name: WrittenFamily(
                each.new,
                view_of(store, each.new).lists,
                combine=partial(combined, merges=each.merges, kind=each.new.value) if each.merges else None,
            )
            for each in self.mapping.families
        }

    @property
    def placement(self) -> Placement:
        """Places of the rows of the changed query."""
        return Placement(self.partitions, self.factors, list(self.families))

    @property
    def keeps_places(self) -> bool:
        """True if each row stays in its partition and key group, so that partitions can be written one by one."""
        same = self.partitions == len(self.old.chains)
        return same and all(each.keeps_places for each in self.mapping.families)

    def rows(self, partition: int) -> Iterator[FamilyRows]:
        """Converted rows of an earlier partition, a range of key groups at a time. Lists keep their order.

        Raises:
            EvolutionValueError: a value does not fit into its column.
            StorageError: a file cannot be read.
        """
        for key_groups in self._ranges(partition):
            for each in self.mapping.families:
                yield self._converted(each, partition, key_groups)

    def tables(self, partition: int) -> Iterator[pa.Table]:
        """Placed rows of a partition that keeps its rows, by ascending key group.

        Raises:
            EvolutionValueError, StorageError: as in `rows`.
        """
        placement = self.placement
        for key_groups in self._ranges(partition):
            rows = [self._converted(each, partition, key_groups) for each in self.mapping.families]
            yield in_order(pa.Table.from_batches([placement.placed(each) for each in rows], PLACED))

    def _ranges(self, partition: int) -> Iterator[KeyGroupRange]:
        """Ranges of key groups of a partition that are read at a time."""
        ranges = overlapping_ranges(partition, len(self.old.chains), self.factors)
        yield from split_ranges(self.old.chains[partition], ranges)

    def _converted(self, each: FamilyMapping, partition: int, key_groups: KeyGroupRange) -> FamilyRows:
        view = view_of(self.old, each.old)
        places = grouping_key(self.old, each.old), grouping_key(self.mapping.new.as_store(), each.new)
        title = f"{self.mapping.new.key}, {each.new.name}"
        merged = merge(read_view(self.storage, view, self.old.chains[partition], key_groups))
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
