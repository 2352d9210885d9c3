"""Memory that Python takes."""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_FOR_GOOD = 3600.0


def traced_peak(do: Callable[[], object]) -> int:
    """The bytes that Python has at most while it does something, above what it had before."""
    with _undisturbed():
        tracemalloc.start()
        try:
            do()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Other threads of this process, such as clients that look for their server, run only while this one waits.

    What they allocate is traced as well, and would change the figures.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_FOR_GOOD)
    try:
        time.sleep(0)  # one that waits for its turn already takes it now
        yield
    finally:
        sys.setswitchinterval(interval)
