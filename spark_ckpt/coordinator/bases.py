"""Requests for base snapshots, and for merges of deltas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from spark_ckpt.checkpoint import tiers
from spark_ckpt.checkpoint.chains import Chain, ChainEntry, ChainTable, all_entries
from spark_ckpt.checkpoint.policy import (
    ASK_AGAIN_AFTER,
    chain_bound,
    is_base_due,
    is_rewrite_due,
    most_deltas,
    rewrite_cycle,
)
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.coordinator.messages import Ack, InProgress
from spark_ckpt.format.keys import SubtaskKey

MERGE_TRIES = 3
"""Failures in sequence after which a subtask with a long chain is asked for a base instead of a merge."""


MOST_IN_PROGRESS = 4
"""Most bases and merges of one store that are in progress. Each is lighter than the one below it, and a store needs a
tier or more for the next."""


class BaseDemand(NamedTuple):
    """Request for a shorter chain, as part of a reply to a store.

    Args:
        due: the store should write a base in the background.
        required: the next ack must bring a base.
        merge: deltas that the store should merge in the background, above all that is in progress; never with a base.
    """

    due: bool = False
    required: bool = False
    merge: tuple[ChainEntry, ...] = ()


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


def in_progress(ack: Ack) -> tuple[InProgress, ...]:
    """Segments of a store that its chain lacks: in progress, or in this ack."""
    brought = []
    if ack.base is not None:
        brought.append(InProgress(0, ack.base.version))
    if ack.merged is not None:
        brought.append(InProgress(ack.merged.first_version, ack.merged.version))
    return (*ack.in_progress, *brought)


def free_deltas(chain: Chain, busy: Sequence[InProgress]) -> tuple[ChainEntry, ...]:
    """Deltas above all segments in progress.

    Args:
        chain: chain of a subtask, which lacks these segments.
        busy: segments in progress.
    """
    last = max((one.version for one in busy), default=0)
    return tuple(delta for delta in chain.entries[chain.bases :] if delta.first_version > last)


class BaseRequests:
    """Requests for base snapshots and for merges.

    A store works at several segments at a time: a base, and merges of deltas above the version of the base, each merge
    above the others. So their results fit into the chain in any order, and a base of minutes holds up no merge.

    A subtask has a few batches to begin or to bring what was requested. Once its chain has reached the bound, its next
    ack must bring a base.

    Args:
        config: limits.
    """

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._bound = chain_bound(config)
        self._cycle = rewrite_cycle(config)
        self._files = FileUse(self._cycle)
        self._asked: dict[SubtaskKey, int] = {}
        self._failed: Counter[SubtaskKey] = Counter()

    def after_ack(self, ack: Ack, chain: Chain | None, table: ChainTable) -> BaseDemand:
        """Request in the reply to an ack.

        Args:
            ack: ack that counts.
            chain: chain of the subtask in the parent checkpoint; None without a parent.
            table: all chains of the parent checkpoint.
        """
        subtask, version = ack.subtask, ack.version
        busy, has_brought = in_progress(ack), ack.base is not None or ack.merged is not None
        if has_brought:
            self._failed.pop(subtask, None)
        elif ack.base_failure is not None:
            self._failed[subtask] += 1
        if has_brought or (busy and ack.base_failure is None):
            self._asked.pop(subtask, None)
        if ack.base is not None or chain is None:
            return BaseDemand()
        if not has_brought and chain.deltas + bool(ack.delta.size) >= self._bound_of(chain, table):
            self._asked[subtask] = version
            return BaseDemand(due=True, required=True)
        if self._was_asked(ack):
            return BaseDemand()
        return self._asked_for(subtask, version, chain, ack.delta.size, table, busy)

    def on_load(self, subtask: SubtaskKey, version: int, chain: Chain, table: ChainTable) -> BaseDemand:
        """Request in the reply to `locate`.

        A store that loads its state has nothing in progress, so earlier requests are void.

        Args:
            subtask: loading subtask.
            version: loaded version.
            chain: chain of the subtask at that version.
            table: chains of all subtasks at that version.
        """
        if chain.deltas >= self._bound_of(chain, table):
            self._asked[subtask] = version
            return BaseDemand(due=True, required=True)
        return self._asked_for(subtask, version, chain, 0, table, ())

    def merges_deltas(self, chain: Chain) -> bool:
        """True if deltas of this chain are merged; see `tiers.merges_deltas`."""
        return tiers.merges_deltas(chain, self._config)

    def _bound_of(self, chain: Chain, table: ChainTable) -> int:
        bound = tiers.chain_bound(self._bound) if self.merges_deltas(chain) else self._bound
        return min(bound, most_deltas(sum(map(len, table.values()))))

    def _asked_for(
        self,
        subtask: SubtaskKey,
        version: int,
        chain: Chain,
        arriving: int,
        table: ChainTable,
        busy: tuple[InProgress, ...],
    ) -> BaseDemand:
        if len(busy) >= MOST_IN_PROGRESS:
            return BaseDemand()
        is_due = not any(one.is_base for one in busy) and self._is_due(subtask, version, chain, arriving, table)
        if is_due and not busy:
            demand = BaseDemand(due=True)
        else:
            demand = self._merge(subtask, version, chain, arriving, busy, is_due)
        if demand.due or demand.merge:
            self._asked[subtask] = version
        return demand

    def _is_due(self, subtask: SubtaskKey, version: int, chain: Chain, arriving: int, table: ChainTable) -> bool:
        partition, config = subtask.partition, self._config
        delta_bytes, base_bytes = chain.size - chain.base_bytes + arriving, chain.base_bytes
        deltas = chain.deltas + bool(arriving)
        if self.merges_deltas(chain):
            due = tiers.is_base_due(partition, chain.base_version, delta_bytes, base_bytes, arriving, config)
            # A base needs no earlier segment.
            due = due or (self._failed[subtask] >= MERGE_TRIES and deltas > config.max_deltas)
        else:
            due = is_base_due(partition, version, deltas, delta_bytes, base_bytes, config)
        return due or self._is_rewrite_due(partition, version, chain, table)

    def _merge(
        self,
        subtask: SubtaskKey,
        version: int,
        chain: Chain,
        arriving: int,
        busy: tuple[InProgress, ...],
        is_base_due: bool,
    ) -> BaseDemand:
        if not self.merges_deltas(chain):
            return BaseDemand()
        free = free_deltas(chain, busy)
        run = tiers.due_run(
            [delta.size for delta in free],
            chain.base_bytes,
            arriving,
            subtask.partition,
            version,
            self._config,
            chain.deltas - len(free),
            is_base_due=is_base_due,
        )
        return BaseDemand() if run is None else BaseDemand(merge=free[run.first : run.end])

    def _is_rewrite_due(self, partition: int, version: int, chain: Chain, table: ChainTable) -> bool:
        if (version + partition) % self._cycle:
            return False
        return is_rewrite_due(self._files.wasted_by(chain, version, table), chain.size)

    def _was_asked(self, ack: Ack) -> bool:
        return ack.version < self._asked.get(ack.subtask, -ASK_AGAIN_AFTER) + ASK_AGAIN_AFTER
