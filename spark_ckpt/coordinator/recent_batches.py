"""Recently started batches."""

from __future__ import annotations

from spark_ckpt.clock import Clock
from spark_ckpt.operations.gc import MINIMUM_GRACE_SECONDS

_REMEMBERED = 4


class RecentBatches:
    """Start times of recent batches, by a monotonic clock.

    Args:
        clock: time source.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began: dict[int, float] = {}

    def began(self, version: int) -> None:
        """Record the start of the batch that leaves this version. The first start counts."""
        self._began.setdefault(version, self._clock.monotonic())
        for old in sorted(self._began)[:-_REMEMBERED]:
            del self._began[old]

    def __contains__(self, version: object) -> bool:
        """True if the batch that leaves this version started recently, in this process."""
        began = self._began.get(version) if isinstance(version, int) else None
        return began is not None and self._clock.monotonic() - began < MINIMUM_GRACE_SECONDS
