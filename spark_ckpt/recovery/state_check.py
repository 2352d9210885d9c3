"""Verification of a checkpoint's state: all its blocks, and their totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from spark_ckpt.checkpoint.batch import SparkBatch, StoreState
from spark_ckpt.checkpoint.chains import Chain, ChainTable, all_entries, chain_of
from spark_ckpt.checkpoint.layout import in_location
from spark_ckpt.checkpoint.load import CheckpointState, damaged_files
from spark_ckpt.errors import StateFileNotFoundError
from spark_ckpt.format.errors import SegmentError
from spark_ckpt.format.key_groups import ParallelismError, overlapping_ranges
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.format.segment_ref import SegmentRef
from spark_ckpt.format.segments import HEADER_BYTES, Block, SegmentKind, decode_block
from spark_ckpt.metadata import KeyGroupRange
from spark_ckpt.recovery.damage import Damage
from spark_ckpt.storage import Storage

_BODY_LENGTH = slice(24, 28)

_LiveKeys: TypeAlias = dict[int, set[tuple[str, bytes]]]
"""The live keys of each key group after all segments: column family and key."""


@dataclass(slots=True)
class StateCheck:
    """Result of reading a checkpoint's state.

    Args:
        damages: damages found.
        blocks: number of blocks read.
        size: their bytes.
        rows: rows after all segments, of the stores with countable rows.
    """

    damages: list[Damage] = field(default_factory=list)
    blocks: int = 0
    size: int = 0
    rows: int = 0


def check_state(
    storage: Storage,
    state: CheckpointState,
    metadata_path: str,
    progress: Callable[[int], None] = lambda size: None,
) -> StateCheck:
    """Reads every block that a checkpoint refers to.

    Args:
        storage: where the state files are.
        state: the checkpoint.
        metadata_path: its `_metadata`, for what is wrong there.
        progress: called after each segment with its bytes.

    Raises:
        StorageError: the storage does not answer.
    """
    return _StateChecker(storage, state, metadata_path, progress).check()


def check_subtask(storage: Storage, state: CheckpointState, metadata_path: str, subtask: SubtaskKey) -> list[Damage]:
    """Reads every block of one subtask.

    Args:
        storage: where the state files are.
        state: the checkpoint.
        metadata_path: its `_metadata`, for what is wrong there.
        subtask: the subtask; one that the checkpoint does not have has no damage.

    Raises:
        StorageError: the storage does not answer.
    """
    return _StateChecker(storage, state, metadata_path, lambda size: None).check_subtask(subtask)


class _StateChecker:
    """Goes through the stores of one checkpoint."""

    def __init__(
        self, storage: Storage, state: CheckpointState, metadata_path: str, progress: Callable[[int], None]
    ) -> None:
        assert state.batch is not None
        self._storage = storage
        self._state = state
        self._batch: SparkBatch = state.batch
        self._metadata_path = metadata_path
        self._progress = progress
        self._result = StateCheck()
        self._unusable: dict[str, str] = {}

    def check(self) -> StateCheck:
        self._check_record()
        self._find_unusable(self._state.table)
        for store in self._batch.stores:
            self._check_store(store, self._state.table[store.key])
        return self._result

    def check_subtask(self, subtask: SubtaskKey) -> list[Damage]:
        chain = chain_of(self._state.table, subtask)
        store = next((store for store in self._batch.stores if store.key == subtask.of_operator), None)
        if chain is None or store is None:
            return []
        self._find_unusable({subtask.of_operator: [chain]})
        try:
            ranges = overlapping_ranges(subtask.partition, store.parallelism, self._batch.key_group_factors)
        except ParallelismError as e:
            self._wrong(str(e), subtask)
        else:
            self._check_chain(chain, ranges, subtask)
        return self._result.damages

    def _find_unusable(self, table: ChainTable) -> None:
        self._unusable = damaged_files(self._storage, table)
        self._result.damages += [Damage(self._where(path), reason) for path, reason in self._unusable.items()]

    def _wrong(self, reason: str, subtask: SubtaskKey | None = None, key_group: int | None = None) -> None:
        self._result.damages.append(Damage(self._metadata_path, reason, None, subtask, key_group))

    def _where(self, path: str) -> str:
        return self._storage.describe(in_location(path))

    # ---- numbers -----------------------------------------------------------------------------------------------------

    def _check_record(self) -> None:
        """The record and the metadata must agree on the batch."""
        record, batch = self._state.record, self._batch
        assert record is not None
        if (batch.batch_id, batch.version) != (record.batch_id, record.version):
            self._wrong(
                f"it has batch {batch.batch_id} and version {batch.version}, but its record has batch "
                f"{record.batch_id} and version {record.version}"
            )
        if batch.version != batch.batch_id + 1:
            self._wrong(f"batch {batch.batch_id} does not lead to version {batch.version}")
        size = sum(entry.size for entry in all_entries(self._state.table))
        if size != record.state_bytes:
            self._wrong(f"its segments have {size:,} bytes, but its record says {record.state_bytes:,}")
        rows = sum(sum(store.rows) for store in batch.stores)
        if rows != record.rows:
            self._wrong(f"its subtasks have {rows:,} rows, but its record says {record.rows:,}")
        if prod(batch.key_group_factors) != batch.max_parallelism:
            factors = list(batch.key_group_factors)
            self._wrong(f"the key-group factors {factors} do not multiply to {batch.max_parallelism} key groups")

    def _check_store(self, store: StoreState, chains: Sequence[Chain]) -> None:
        """Checks all subtasks of a store. By the numbering they own every key group together."""
        live: Counter[int] = Counter()
        is_countable = True
        for partition, chain in enumerate(chains):
            subtask = SubtaskKey(store.operator_id, store.store, partition)
            try:
                ranges = overlapping_ranges(partition, store.parallelism, self._batch.key_group_factors)
            except ParallelismError as e:
                self._wrong(str(e), subtask)
                return
            before = len(self._result.damages)
            keys = self._check_chain(chain, ranges, subtask)
            is_countable &= len(self._result.damages) == before and self._has_all_rows(chain)
            live.update({key_group: len(there) for key_group, there in keys.items()})
        if is_countable:
            self._result.rows += live.total()
            if live.total() != sum(store.rows):
                said = f"its subtasks list {sum(store.rows):,}"
                self._wrong(f"{store.key} has {live.total():,} rows in its segments, but {said}")

    def _has_all_rows(self, chain: Chain) -> bool:
        """True if all segments are readable and all their rows count. A filter would need the hash of each row's
        partition key, which only Spark knows."""
        return not any(entry.path in self._unusable or entry.filters for entry in chain.entries)

    # ---- bytes -------------------------------------------------------------------------------------------------------

    def _check_chain(self, chain: Chain, ranges: Sequence[KeyGroupRange], subtask: SubtaskKey) -> _LiveKeys:
        kinds = [entry.is_base for entry in chain.entries]
        if kinds != sorted(kinds, reverse=True):
            self._wrong("a base follows a delta", subtask)
        deltas = [entry.version for entry in chain.entries if not entry.is_base]
        if deltas != sorted(deltas):
            self._wrong(f"the deltas are not in the order of their versions: {deltas}", subtask)
        if not all(0 < entry.version <= self._batch.version for entry in chain.entries):
            self._wrong(f"versions out of range: {[entry.version for entry in chain.entries]}", subtask)
        live: _LiveKeys = {}
        for entry in chain.entries:
            for key_group in entry.key_groups.tolist():
                if not any(key_group in owned for owned in ranges):
                    self._wrong("the key group belongs to another subtask", subtask, key_group)
            if entry.path not in self._unusable:
                for block in self._blocks(entry, subtask):
                    _apply(live.setdefault(block.key_group, set()), block)
            self._progress(entry.size)
        return live

    def _blocks(self, entry: SegmentRef, subtask: SubtaskKey) -> Iterator[Block]:
        """The undamaged and expected blocks of a segment."""
        path = self._metadata_path if entry.path is None else self._where(entry.path)
        start, data = self._read(entry)
        kind = SegmentKind.BASE if entry.is_base else SegmentKind.DELTA
        for key_group, offset in zip(entry.key_groups.tolist(), entry.offsets.tolist(), strict=True):
            if not 0 <= offset <= entry.file_size - HEADER_BYTES:
                self._wrong(f"offset {offset:,} is outside {path}", subtask, key_group)
                continue
            try:
                block = decode_block(data, offset - start, path, start)
            except SegmentError as e:
                self._result.damages.append(replace(Damage.of(path, e), subtask=subtask, key_group=key_group))
                continue
            self._result.blocks += 1
            if (block.key_group, block.kind, block.version) == (key_group, kind, entry.version):
                yield block
            else:
                found = f"{block.kind.name.lower()} of key group {block.key_group}, version {block.version}"
                reason = f"found a {found}; expected a {kind.name.lower()} of version {entry.version}"
                self._result.damages.append(Damage(path, reason, offset, subtask, key_group))

    def _read(self, entry: SegmentRef) -> tuple[int, bytes]:
        """The bytes from the first to the last block of a segment, and their offset in the file."""
        if not entry.offsets.size:
            return 0, b""
        first, last = max(0, int(entry.offsets.min())), int(entry.offsets.max())
        if entry.path is None:
            self._result.size += entry.size
            return 0, bytes(entry.data)
        name = in_location(entry.path)
        length = max(entry.size, last + HEADER_BYTES - first)
        try:
            data = self._storage.read_range(name, first, length)
            body = int.from_bytes(data[last - first :][_BODY_LENGTH], "big", signed=True)
            missing = last - first + HEADER_BYTES + body - len(data)
            if 0 < missing <= entry.file_size:
                # After a rescale a segment is part of a written one, and its size may not reach the end of a block.
                data += self._storage.read_range(name, first + len(data), missing)
        except StateFileNotFoundError:
            return first, b""  # deleted since the listing: all its blocks are missing
        self._result.size += len(data)
        return first, data


def _apply(live: set[tuple[str, bytes]], block: Block) -> None:
    """Applies a block of a chain, oldest first, to the live keys. A removed key has no value."""
    for section in block.sections:
        family = section.column_family
        for key, value in section.entries:
            if value is None:
                live.discard((family, key))
            else:
                live.add((family, key))
