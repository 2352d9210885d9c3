"""Client of Google Cloud Storage of the coordinator. Requires gcsfs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from fsspec.asyn import sync
from gcsfs import core

from spark_ckpt.storage.holding import HOLD, overlapping, sent_once

REQUEST_SECONDS = 30.0
"""Timeout of a request in seconds, including the transfer of its body."""

_DELETIONS_AT_ONCE = 32

_once = core.GCSFileSystem._request.__wrapped__  # the decorated method sends a request up to six times


class OneTryGcsFileSystem(core.GCSFileSystem):  # type: ignore[misc]
    """File system that sends each request once, with a timeout of `REQUEST_SECONDS`: only `FsspecStorage` retries.

    `gcsfs.GCSFileSystem` is a subclass that first asks a second service for the layout of the bucket.

    A path is a literal bucket and key: no character of a key starts a pattern or a generation.
    """

    def split_path(self, path: str) -> tuple[str, str, str | None]:
        """Bucket and key of a path: `#` and `?` are part of the key."""
        bucket, _, key = path.removeprefix("gs://").removeprefix("gcs://").lstrip("/").partition("/")
        return bucket, key, None

    async def _pipe_file(self, path: str, data: bytes, mode: str = "overwrite", **_: Any) -> None:  # noqa: ANN401
        # gcsfs separates the name and the content of an object by a constant string, which the content may contain.
        bucket, key, _generation = self.split_path(path)
        condition = {"ifGenerationMatch": "0"} if mode == "create" else {}
        await self._call(
            "POST",
            f"{self._location}/upload/storage/v1/b/{quote(bucket)}/o",
            uploadType="media",
            name=key,
            headers={"Content-Type": "application/octet-stream"},
            data=bytes(data) if HOLD.get() is None else sent_once(bytes(data)),
            **condition,
        )

    def pipe_chunks(self, path: str, chunks: Iterable[bytes]) -> None:
        """Writes an object from chunks, which is published when all are sent."""
        file = self.open(path, "wb", autocommit=False)
        try:
            with file:
                file.writelines(chunks)
        except BaseException:
            file.discard()
            raise
        file.commit()

    def delete_objects(self, paths: Sequence[str]) -> None:
        """Deletes objects, several at once; missing objects are ignored.

        Raises:
            OSError: an object could not be deleted. All others were attempted.
        """
        sync(self.loop, self._delete_objects, paths)

    async def _delete_objects(self, paths: Sequence[str]) -> None:
        limit = asyncio.Semaphore(_DELETIONS_AT_ONCE)

        async def delete(path: str) -> None:
            async with limit:
                try:
                    await self._rm_file(path)
                except FileNotFoundError:
                    return

        results = await asyncio.gather(*map(delete, paths), return_exceptions=True)
        for error in results:
            if error is not None:
                raise error

    def overlapping_creates(self, path: str, around: bytes, within: bytes) -> tuple[Exception | None, Exception | None]:
        """Creates an object exclusively by two requests, of which one begins before the other and ends after it; see
        `overlapping`."""
        create = partial(self._pipe_file, path, mode="create")
        errors: tuple[Exception | None, Exception | None] = sync(self.loop, overlapping, create, around, within)
        return errors

    async def _request(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return await asyncio.wait_for(_once(self, method, path, *args, **kwargs), REQUEST_SECONDS)
        except asyncio.TimeoutError as e:
            # Not a TimeoutError: fsspec would replace it with its own, which has no message.
            raise ConnectionError(f"no answer in {REQUEST_SECONDS:g} s") from e
        except OSError as e:
            if type(e) is OSError and str(e).startswith("Forbidden"):  # gcsfs has no class for a 403
                raise PermissionError(str(e)) from e
            raise
