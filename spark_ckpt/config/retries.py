"""Pauses between retries of the coordinator to complete a checkpoint."""

from __future__ import annotations

_FIRST_SECONDS = 0.5
_MAX_SECONDS = 10.0


def pause_after(failures: int) -> float:
    """Seconds to wait after this many consecutive failures, at least one."""
    return min(_FIRST_SECONDS * 2.0 ** (failures - 1), _MAX_SECONDS)


def all_pauses(tolerable: int) -> float:
    """Total seconds of pauses for this many tolerated consecutive failures."""
    return sum(pause_after(failures) for failures in range(1, tolerable + 1))
