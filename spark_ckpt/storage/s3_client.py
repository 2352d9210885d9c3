"""The client of S3 that the coordinator uses. Needs s3fs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import s3fs
from fsspec.asyn import sync

REQUEST_SECONDS = 30.0
"""An end to every request, with its bytes: 50 MB, more s3fs does not send at once, at 1.7 MB/s. It is needed beside the
time that the client waits for bytes to come, for aiohttp may not count that while it waits for leave to send a body
(`Expect: 100-continue`)."""

_MOST_KEYS_IN_A_REQUEST = 1000


class OneTryS3FileSystem(s3fs.S3FileSystem):  # type: ignore[misc]
    """Asks S3 once, and not for longer than `REQUEST_SECONDS`: `FsspecStorage` alone decides what is asked again.

    A path is a bucket and a key, literally: no character of a key is a pattern, nor the begin of a version id.
    """

    retries = 1

    def split_path(self, path: str) -> tuple[str, str, str | None]:
        """The bucket and the key of a path. A key may hold `?versionId=`: no version is ever asked for."""
        path = path.removeprefix("s3://").removeprefix("s3a://").lstrip("/")
        bucket, key = self._find_bucket_key(path) if "/" in path else (path, "")
        return bucket, key, None

    def delete_objects(self, paths: Sequence[str]) -> None:
        """Deletes objects, a thousand with one request. `rm` would take brackets and stars for patterns.

        Args:
            paths: of objects of one bucket; those that are not there are no error.

        Raises:
            OSError: one could not be deleted. The others were tried.
        """
        sync(self.loop, self._delete_objects, paths)

    async def _delete_objects(self, paths: Sequence[str]) -> None:
        failed: list[dict[str, str]] = []
        for start in range(0, len(paths), _MOST_KEYS_IN_A_REQUEST):
            split = [self.split_path(path) for path in paths[start : start + _MOST_KEYS_IN_A_REQUEST]]
            objects = [{"Key": key} for _, key, _ in split]
            answer = await self._call_s3(
                "delete_objects", Bucket=split[0][0], Delete={"Objects": objects, "Quiet": True}
            )
            failed += answer.get("Errors", [])
        if failed:
            first = failed[0]
            others = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            raise OSError(f"{first.get('Code')}: {first.get('Key')}{others}: {first.get('Message')}")

    async def _call_s3(self, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return await asyncio.wait_for(super()._call_s3(method, *args, **kwargs), REQUEST_SECONDS)
        except asyncio.TimeoutError as e:
            # No TimeoutError: fsspec would put one of its own in its place, which says nothing.
            raise ConnectionError(f"no answer in {REQUEST_SECONDS:g} s") from e
