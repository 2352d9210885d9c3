"""Size of a checkpoint after a rescale to any number of partitions, computed without the rescale. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from math import gcd, prod

from spark_ckpt.checkpoint import packing
from spark_ckpt.checkpoint.chains import ChainTable
from spark_ckpt.checkpoint.packing import SEGMENT_BYTES, SUBTASK_BYTES
from spark_ckpt.format.keys import StoreKey
from spark_ckpt.rescaling.reassign import pooled, ranges_of

SHARE = 0.5
"""Share of the limit of readers that a rescale may use. The rest is for the deltas that follow, until the partitions
have base snapshots of their own."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of segments at a number of partitions that divides the key groups.

    Args:
        count: number of parts.
        filter_bytes: bytes of the filters that they have from earlier rescales, as text.
    """

    count: int
    filter_bytes: int


class RescaleSize:
    """Sizes of the segment tables after a rescale, by number of partitions.

    Partitions that do not own whole key groups read the same blocks: at P partitions, each part of a segment at
    g = gcd(P, K) partitions appears P/g times. So these sizes follow from those at the divisors of K.

    Args:
        table: chains before the rescale, without inline segments.
        alone: stores of operators that run as one task.
        factors: the numbering of the key groups.
    """

    def __init__(self, table: ChainTable, alone: Set[StoreKey], factors: Sequence[int]) -> None:
        self._factors = tuple(factors)
        self._max_parallelism = prod(self._factors)
        self._stores = [list(pooled(chains, factors)) for key, chains in table.items() if key not in alone]
        self._alone_segments = sum(len(chain.entries) for key in alone for chain in table.get(key, ()))
        self._min_parts = sum(map(len, self._stores))
        self._parts = cache(self._count)

    def reads(self, partitions: int) -> int:
        """How often each block is read when all partitions load their state, at most."""
        return partitions // gcd(partitions, self._max_parallelism) if self._stores else 1

    def table_bytes(self, partitions: int) -> int:
        """Bytes of the segment tables of a `_metadata` before compression; hardly more than they have.

        Args:
            partitions: number of partitions after the rescale, at most the number of key groups.
        """
        parts, reads = self._parts(gcd(partitions, self._max_parallelism)), self.reads(partitions)
        total = self._alone_segments * SEGMENT_BYTES + len(self._stores) * partitions * SUBTASK_BYTES
        total += parts.count * reads * SEGMENT_BYTES
        if reads > 1 or parts.filter_bytes:
            own = len(f"[{partitions},[{partitions - 1}]],") if reads > 1 else 0
            total += reads * (parts.count * (own + len("[],")) + parts.filter_bytes)
            total += len(self._stores) * partitions * len(f'"{partitions}":[],')
        return total

    def fits(self, partitions: int) -> bool:
        """True if a rescale may go to this number of partitions."""
        max_bytes = SHARE * packing.MAX_BYTES
        # Mostly this tells, and costs nothing.
        if self._min_parts * self.reads(partitions) * SEGMENT_BYTES > max_bytes:
            return False
        return self.table_bytes(partitions) <= max_bytes

    def nearest(self, partitions: int) -> list[int]:
        """The nearest numbers below and above that a rescale may go to, ascending.

        Args:
            partitions: a number that does not fit.
        """
        below = next((n for n in range(partitions - 1, 0, -1) if self.fits(n)), None)
        above = next((n for n in range(partitions + 1, self._max_parallelism + 1) if self.fits(n)), None)
        return [n for n in (below, above) if n is not None]

    def min_reads(self, partitions: int) -> list[int]:
        """The nearest numbers below and above at which each block is read once, ascending: divisors of the number of
        key groups.

        Args:
            partitions: any other number.
        """
        divisors = [n for n in range(1, self._max_parallelism + 1) if self._max_parallelism % n == 0]
        below = [n for n in divisors if n < partitions][-1:]
        return below + [n for n in divisors if n > partitions][:1]

    def _count(self, divisor: int) -> Parts:
        count = filter_bytes = 0
        for entries in self._stores:
            for entry in entries:
                parts = ranges_of(entry, divisor, self._factors)
                count += parts
                if entry.filters:
                    filter_bytes += parts * (len(json.dumps(entry.filters, separators=(",", ":"))) + 1)
        return Parts(count, filter_bytes)
