"""Bytes of state files that chains use: a base that releases mostly unused files is due."""

from __future__ import annotations

from collections import Counter

from spark_ckpt.checkpoint.chains import Chain, ChainTable, all_entries


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
