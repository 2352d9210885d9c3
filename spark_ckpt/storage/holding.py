"""Requests that are held back before their last byte, for the probe of a store (docs/storage.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

from fsspec.asyn import sync

_Create: TypeAlias = Callable[[bytes], Awaitable[object]]

_BEGIN_SECONDS = 5.0
"""Time for a request to reach the store, all but its last byte."""

_HOLD_SECONDS = 0.5
"""Time for which a request is held back while the store answers none that came later."""


class Hold:
    """A request that sends its last byte only when it is told to."""

    def __init__(self) -> None:
        self.begun, self.end = asyncio.Event(), asyncio.Event()


HOLD: ContextVar[Hold | None] = ContextVar("hold", default=None)
"""What holds back the request of this context."""


async def sent_once(data: bytes) -> AsyncIterator[bytes]:
    """Content of a request that can be sent only once. Its last byte waits while the context's request is held back."""
    if (hold := HOLD.get()) is not None:
        yield data[:-1]
        hold.begun.set()
        await hold.end.wait()
        data = data[-1:]
    yield data


def overlapping_creates(
    file_system: Any,  # noqa: ANN401  (fsspec has no types)
    path: str,
    around: bytes,
    within: bytes,
) -> tuple[Exception | None, Exception | None]:
    """Creates an object exclusively by two requests, of which one begins before the other and ends after it.

    Args:
        file_system: fsspec file system whose creates send their content by `sent_once`.
        path: path of an object that does not exist.
        around: content of the first request, whose last byte is held back.
        within: content of the second request.

    Returns:
        Error of each request; None for one that succeeded.
    """
    create = partial(file_system._pipe_file, path, mode="create")
    errors: tuple[Exception | None, Exception | None] = sync(file_system.loop, _overlapping, create, around, within)
    return errors


async def _overlapping(create: _Create, around: bytes, within: bytes) -> tuple[Exception | None, Exception | None]:
    async def error_of(data: bytes, hold: Hold | None) -> Exception | None:
        HOLD.set(hold)
        try:
            await create(data)
        except Exception as e:
            return e
        return None

    hold = Hold()
    first = asyncio.ensure_future(error_of(around, hold))
    await _within(hold.begun, first, _BEGIN_SECONDS)
    second = asyncio.ensure_future(error_of(within, None))
    # A store that locks the name from the first byte lets the second request wait for the first.
    await asyncio.wait([second], timeout=_HOLD_SECONDS)
    hold.end.set()
    return await first, await second


async def _within(event: asyncio.Event, request: asyncio.Future[Any], seconds: float) -> None:
    """Waits for an event, the end of a request, or a time."""
    waiting: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    await asyncio.wait([waiting, request], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
