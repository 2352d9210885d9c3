"""The client of S3 that the coordinator uses. Needs s3fs."""

from __future__ import annotations

import asyncio
from typing import Any

import s3fs

REQUEST_SECONDS = 30.0
"""An end to every request, with its bytes: 50 MB, more s3fs does not send at once, at 1.7 MB/s. It is needed beside the
time that the client waits for bytes to come, for aiohttp may not count that while it waits for leave to send a body
(`Expect: 100-continue`)."""


class OneTryS3FileSystem(s3fs.S3FileSystem):  # type: ignore[misc]
    """Asks S3 once, and not for longer than `REQUEST_SECONDS`: `FsspecStorage` alone decides what is asked again."""

    retries = 1

    async def _call_s3(self, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return await asyncio.wait_for(super()._call_s3(method, *args, **kwargs), REQUEST_SECONDS)
        except asyncio.TimeoutError as e:
            # No TimeoutError: fsspec would put one of its own in its place, which says nothing.
            raise ConnectionError(f"no answer in {REQUEST_SECONDS:g} s") from e
