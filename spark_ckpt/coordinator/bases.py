"""Requests for base snapshots."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from spark_ckpt.checkpoint.chains import Chain, ChainTable, all_entries
from spark_ckpt.checkpoint.policy import ASK_AGAIN_AFTER, chain_bound, is_base_due, is_rewrite_due, rewrite_cycle
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.coordinator.messages import Ack
from spark_ckpt.format.keys import SubtaskKey


class BaseDemand(NamedTuple):
    """Request for a base snapshot, as part of a reply to a store.

    Args:
        due: the store should write a base in the background.
        required: the next ack must bring a base.
    """

    due: bool = False
    required: bool = False


class FileUse:
    """Bytes of each state file that the chains of a checkpoint use.

    Counting visits all segments, so it happens once per cycle. Between counts the unused bytes are underestimated.

    Args:
        cycle: batches per count.
    """

    def __init__(self, cycle: int) -> None:
        self._cycle = cycle
        self._version: int | None = None
        self._used: Counter[str] = Counter()

    def wasted_by(self, chain: Chain, version: int, table: ChainTable) -> float:
        """Share of a chain in the unused bytes of its files, in proportion to the bytes that it uses.

        Args:
            chain: chain in `table`.
            version: version of the table's state, or the next one.
            table: all chains.
        """
        if self._version is None or not 0 <= version - self._version < self._cycle:
            self._count(table)
            self._version = version
        wasted = 0.0
        for entry in chain.entries:
            if entry.path is not None and entry.file_size > (used := self._used[entry.path]) > 0:
                wasted += (entry.file_size - used) * entry.size / used
        return wasted

    def _count(self, table: ChainTable) -> None:
        self._used = Counter()
        for entry in all_entries(table):
            if entry.path is not None:
                self._used[entry.path] += entry.size


class BaseRequests:
    """Requests for base snapshots.

    A subtask has a few batches to bring a requested base. Once its chain has reached the bound, its next ack must
    bring one.

    Args:
        config: limits.
    """

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._bound = chain_bound(config)
        self._cycle = rewrite_cycle(config)
        self._files = FileUse(self._cycle)
        self._asked: dict[SubtaskKey, int] = {}

    def after_ack(self, ack: Ack, chain: Chain | None, table: ChainTable) -> BaseDemand:
        """Base request in the reply to an ack.

        Args:
            ack: ack that counts.
            chain: chain of the subtask in the parent checkpoint; None without a parent.
            table: all chains of the parent checkpoint.
        """
        if ack.base is not None:
            self._asked.pop(ack.subtask, None)
            return BaseDemand()
        if chain is None:
            return BaseDemand()
        deltas = chain.deltas + bool(ack.delta.size)
        if deltas >= self._bound:
            self._asked[ack.subtask] = ack.version
            return BaseDemand(due=True, required=True)
        delta_bytes = chain.size - chain.base_bytes + ack.delta.size
        partition, version = ack.subtask.partition, ack.version
        due = not self._was_asked(ack) and (
            is_base_due(partition, version, deltas, delta_bytes, chain.base_bytes, self._config)
            or self._is_rewrite_due(partition, version, chain, table)
        )
        if due:
            self._asked[ack.subtask] = ack.version
        return BaseDemand(due)

    def on_load(self, subtask: SubtaskKey, version: int, chain: Chain, table: ChainTable) -> BaseDemand:
        """Base request in the reply to `locate`.

        A store that loads its state has no base in progress, so earlier requests are void.

        Args:
            subtask: loading subtask.
            version: loaded version.
            chain: chain of the subtask at that version.
            table: chains of all subtasks at that version.
        """
        required = chain.deltas >= self._bound
        partition, delta_bytes = subtask.partition, chain.size - chain.base_bytes
        due = (
            required
            or is_base_due(partition, version, chain.deltas, delta_bytes, chain.base_bytes, self._config)
            or self._is_rewrite_due(partition, version, chain, table)
        )
        if due:
            self._asked[subtask] = version
        return BaseDemand(due, required)

    def _is_rewrite_due(self, partition: int, version: int, chain: Chain, table: ChainTable) -> bool:
        if (version + partition) % self._cycle:
            return False
        return is_rewrite_due(self._files.wasted_by(chain, version, table), chain.size)

    def _was_asked(self, ack: Ack) -> bool:
        return ack.version < self._asked.get(ack.subtask, -ASK_AGAIN_AFTER) + ASK_AGAIN_AFTER
