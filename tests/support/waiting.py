"""Waiting for another thread or process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 300.0
"""Timeout in seconds that only a hang exceeds, however busy the machine is."""

_POLL = 0.01


def eventually(
    condition: Callable[[], T], seconds: float = PATIENCE, what: str | Callable[[], str] = "", *, poll: float = _POLL
) -> T:
    """Waits until a condition holds.

    Args:
        condition: polled until true; its exceptions end the wait.
        seconds: maximum wait.
        what: the expected event, for the message; a function is called at the timeout.
        poll: pause between two polls, in seconds; longer for a condition that itself needs much time.

    Returns:
        The first true value of the condition.

    Raises:
        TimeoutError: the condition does not hold in time.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(poll)
    return value
