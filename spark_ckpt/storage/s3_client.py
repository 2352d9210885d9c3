"""S3 client of the coordinator. Requires s3fs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import s3fs
from fsspec.asyn import sync

from spark_ckpt.storage.holding import HOLD, sent_once
from spark_ckpt.storage.one_try import answered

REQUEST_SECONDS = 30.0
"""Timeout of a request in seconds, including the transfer of its body: enough for 50 MB, the most that s3fs sends in
one request, at 1.7 MB/s. The client's read timeout does not suffice, because aiohttp may not apply it while it waits
for permission to send a body (`Expect: 100-continue`)."""

_MAX_KEYS_IN_A_REQUEST = 1000


class OneTryS3FileSystem(s3fs.S3FileSystem):  # type: ignore[misc]
    """S3 file system that sends each request once, with a timeout of `REQUEST_SECONDS`: only `FsspecStorage` retries.

    aiohttp below repeats a request whose connection was dropped, except exclusive creates (`_only_once`).

    A path is a literal bucket and key: no character of a key starts a pattern or a version id.
    """

    retries = 1

    async def get_s3(self, bucket: str | None = None) -> Any:  # noqa: ANN401  (aiobotocore has no types)
        """Client for a bucket."""
        client = await super().get_s3(bucket)
        client.meta.events.register("before-send.s3.PutObject", _only_once, unique_id="spark-ckpt-only-once")
        return client

    def split_path(self, path: str) -> tuple[str, str, str | None]:
        """Bucket and key of a path. `?versionId=` is part of the key: versions are never requested."""
        path = path.removeprefix("s3://").removeprefix("s3a://").lstrip("/")
        bucket, key = self._find_bucket_key(path) if "/" in path else (path, "")
        return bucket, key, None

    def delete_objects(self, paths: Sequence[str]) -> None:
        """Deletes objects, a thousand per request. `rm` would treat brackets and asterisks as patterns.

        Args:
            paths: paths of objects in one bucket; missing objects are ignored.

        Raises:
            OSError: an object could not be deleted. All others were attempted.
        """
        sync(self.loop, self._delete_objects, paths)

    async def _delete_objects(self, paths: Sequence[str]) -> None:
        failed: list[dict[str, str]] = []
        for start in range(0, len(paths), _MAX_KEYS_IN_A_REQUEST):
            split = [self.split_path(path) for path in paths[start : start + _MAX_KEYS_IN_A_REQUEST]]
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
        return await answered(super()._call_s3(method, *args, **kwargs), REQUEST_SECONDS)


async def _only_once(request: Any, **_: object) -> None:  # noqa: ANN401
    """Prevents aiohttp from repeating a conditional put that the store may have carried out.

    Otherwise "refused" may be the answer to the second of two requests, while the first may still take effect. aiohttp
    repeats no request whose body it can send only once, after it has sent it.
    """
    if "If-None-Match" not in request.headers:
        return
    body = request.body
    if isinstance(body, io.BytesIO):
        request.body = sent_once(body.getvalue())
    elif HOLD.get() is not None and hasattr(body, "__aiter__"):  # with TLS, a checksum follows the content
        request.body = sent_once(b"".join([part async for part in body]))
