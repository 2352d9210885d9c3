"""Python's memory use."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_FOR_GOOD = 3600.0


def traced_peak(do: Callable[[], object]) -> int:
    """Peak of Python's memory during the call, in bytes above the level before it."""
    with _undisturbed():
        tracemalloc.start()
        try:
            do()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Suspends other threads of this process, such as clients polling their server, unless this thread waits.

    Their allocations are traced as well and would distort the figures.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_FOR_GOOD)
    try:
        time.sleep(0)  # a thread already waiting for its turn takes it now
        yield
    finally:
        sys.setswitchinterval(interval)
