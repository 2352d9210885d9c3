"""The cost of a batch without rows, from batches with different numbers of rows."""

from __future__ import annotations

from collections import deque

_BATCHES = 40
"""Batches that an estimate looks back."""

_LEAST_SPREAD = 1.5
"""Least ratio of the most rows to the fewest that tells what a row costs."""


class FixedCost:
    """Estimate for one number of partitions. It errs to the low side, where a policy keeps partitions.

    Batches of similar sizes tell only the part before and after the tasks. Those of different sizes lie on a line,
    whose start is the cost without rows.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=_BATCHES)
        self._overhead_ms: float | None = None
        self._earlier_ms = 0.0

    @property
    def ms(self) -> float:
        """Milliseconds of a batch without rows."""
        if not self._seen:
            return self._earlier_ms
        shortest = min(ms for _, ms in self._seen)
        return min(max(self._overhead_ms or 0.0, _start_of_line(self._seen), self._earlier_ms), shortest)

    def add(self, rows: int, batch_ms: float, overhead_ms: float | None) -> None:
        """Adds a batch.

        Args:
            rows: its input rows.
            batch_ms: its duration.
            overhead_ms: part before and after the tasks, if known.
        """
        self._seen.append((rows, batch_ms))
        if overhead_ms is not None:
            self._overhead_ms = min(overhead_ms, batch_ms if self._overhead_ms is None else self._overhead_ms)

    def rescale(self, before: int, after: int) -> None:
        """Begins again after a change of partitions. The cost falls at most with their number."""
        self._earlier_ms = self.ms * min(1.0, after / before)
        self._overhead_ms = None
        self._seen.clear()


def _start_of_line(seen: deque[tuple[int, float]]) -> float:
    """Start of the line through batches by least squares; 0 if their sizes are too similar."""
    sizes = [rows for rows, _ in seen]
    if max(sizes) < _LEAST_SPREAD * min(sizes) or max(sizes) == 0:
        return 0.0
    mean_rows, mean_ms = sum(sizes) / len(seen), sum(ms for _, ms in seen) / len(seen)
    slope = sum((rows - mean_rows) * (ms - mean_ms) for rows, ms in seen) / sum((n - mean_rows) ** 2 for n in sizes)
    return max(0.0, mean_ms - slope * mean_rows) if slope > 0 else 0.0
