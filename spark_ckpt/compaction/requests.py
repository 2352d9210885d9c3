"""Requests for compactions of a job's chains, and what was asked of each store."""

from __future__ import annotations

from collections import Counter

from spark_ckpt.checkpoint.chains import Chain, ChainTable
from spark_ckpt.compaction import tiers
from spark_ckpt.compaction.file_use import FileUse
from spark_ckpt.compaction.plan import Moment, plan
from spark_ckpt.compaction.policy import ASK_AGAIN_AFTER, chain_bound, is_rewrite_due, most_deltas, rewrite_cycle
from spark_ckpt.config import CheckpointConfig
from spark_ckpt.format.keys import SubtaskKey
from spark_ckpt.messages import NO_COMPACTION, REQUIRED_COMPACTION, Ack, CompactionRequest, InProgress, Kind


class CompactionRequests:
    """Requests for bases and for merges.

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

    def after_ack(self, ack: Ack, chain: Chain | None, table: ChainTable) -> CompactionRequest:
        """Request in the reply to an ack.

        Args:
            ack: ack that counts.
            chain: chain of the subtask in the parent checkpoint; None without a parent.
            table: all chains of the parent checkpoint.
        """
        subtask, version = ack.subtask, ack.version
        busy, has_brought = _in_progress(ack), ack.base is not None or ack.merged is not None
        if has_brought:
            self._failed.pop(subtask, None)
        elif ack.compaction_failure is not None:
            self._failed[subtask] += 1
        if has_brought or (busy and ack.compaction_failure is None):
            self._asked.pop(subtask, None)
        if ack.base is not None or chain is None:
            return NO_COMPACTION
        if not has_brought and chain.deltas + bool(ack.delta.size) >= self._bound_of(chain, table):
            self._asked[subtask] = version
            return REQUIRED_COMPACTION
        if self._was_asked(ack):
            return NO_COMPACTION
        return self._planned(subtask, version, chain, ack.delta.size, table, busy)

    def on_load(self, subtask: SubtaskKey, version: int, chain: Chain, table: ChainTable) -> CompactionRequest:
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
            return REQUIRED_COMPACTION
        return self._planned(subtask, version, chain, 0, table, ())

    def merges_deltas(self, chain: Chain) -> bool:
        """True if deltas of this chain are merged; see `tiers.merges_deltas`."""
        return tiers.merges_deltas(chain, self._config)

    def _bound_of(self, chain: Chain, table: ChainTable) -> int:
        bound = tiers.chain_bound(self._bound) if self.merges_deltas(chain) else self._bound
        return min(bound, most_deltas(sum(map(len, table.values()))))

    def _planned(
        self,
        subtask: SubtaskKey,
        version: int,
        chain: Chain,
        arriving: int,
        table: ChainTable,
        busy: tuple[InProgress, ...],
    ) -> CompactionRequest:
        def is_wasteful() -> bool:
            if (version + subtask.partition) % self._cycle:
                return False
            return is_rewrite_due(self._files.wasted_by(chain, version, table), chain.size)

        moment = Moment(subtask.partition, version, arriving, self._failed[subtask], is_wasteful)
        request = plan(chain, busy, moment, self._config)
        if request.kind is not Kind.NONE:
            self._asked[subtask] = version
        return request

    def _was_asked(self, ack: Ack) -> bool:
        return ack.version < self._asked.get(ack.subtask, -ASK_AGAIN_AFTER) + ASK_AGAIN_AFTER


def _in_progress(ack: Ack) -> tuple[InProgress, ...]:
    """Segments of a store that its chain lacks: in progress, or in this ack."""
    brought = []
    if ack.base is not None:
        brought.append(InProgress(0, ack.base.version))
    if ack.merged is not None:
        brought.append(InProgress(ack.merged.first_version, ack.merged.version))
    return (*ack.in_progress, *brought)
