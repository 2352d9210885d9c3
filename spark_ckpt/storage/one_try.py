"""Requests of clients that send each of them once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

_T = TypeVar("_T")

_DELETIONS_AT_ONCE = 32


async def answered(request: Awaitable[_T], seconds: float) -> _T:
    """The answer to a request.

    Args:
        request: the request.
        seconds: its timeout in seconds, including the transfer of its body.

    Raises:
        ConnectionError: there is no answer in this time.
    """
    try:
        return await asyncio.wait_for(request, seconds)
    except asyncio.TimeoutError as e:
        # Not a TimeoutError: fsspec would replace it with its own, which has no message.
        raise ConnectionError(f"no answer in {seconds:g} s") from e


async def delete_each(
    paths: Sequence[str], delete: Callable[[str], Awaitable[object]], missing: type[Exception]
) -> None:
    """Deletes objects, several at once.

    Args:
        paths: paths of the objects.
        delete: deletes one.
        missing: error of `delete` for an object that does not exist, which is ignored.

    Raises:
        Exception: the first error of `delete`. All others were attempted.
    """
    limit = asyncio.Semaphore(_DELETIONS_AT_ONCE)

    async def delete_one(path: str) -> None:
        async with limit:
            try:
                await delete(path)
            except missing:
                return

    for error in await asyncio.gather(*map(delete_one, paths), return_exceptions=True):
        if error is not None:
            raise error
