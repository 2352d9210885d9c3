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
    """Request for a base, as part of a reply to a store.

    Args:
        due: it should write one in the background.
        required: its next ack must bring one.
    """

    due: bool = False
    required: bool = False


class FileUse:
    """Bytes of each state file that the chains of a checkpoint use.

    Counted once in a cycle of batches, since that looks at all segments. In between more becomes unused than it knows.

    Args:
        cycle: batches.
    """

    def __init__(self, cycle: int) -> None:
        self._cycle = cycle
        self._version: int | None = None
        self._used: Counter[str] = Counter()

    def wasted_by(self, chain: Chain, version: int, table: ChainTable) -> float:
        """The share of a chain in what its files hold and no chain uses: in proportion to what it uses itself, bytes.

        Args:
            chain: of the table.
            version: of the table's state, or the one after.
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
    """Asks subtasks for bases.

    A subtask that was asked gets a few batches to bring one. One whose chain has reached the bound gets none: its next
    ack must bring a base.

    Args:
        config: the limits.
    """

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._bound = chain_bound(config)
        self._cycle = rewrite_cycle(config)
        self._files = FileUse(self._cycle)
        self._asked: dict[SubtaskKey, int] = {}

    def after_ack(self, ack: Ack, chain: Chain | None, table: ChainTable) -> BaseDemand:
        """The demand that the reply to an ack carries.

        Args:
            ack: one that counts.
            chain: the state that the batch started from; None if it had none.
            table: the states that the batch started from, of all subtasks.
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
        """The demand that the answer to `locate` carries.

        A store that loads its state has no base under way, whatever it was asked for before.

        Args:
            subtask: that loads.
            version: what it loads.
            chain: the state at that version.
            table: the states of all subtasks at that version.
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
