"""Client of Google Cloud Storage of the coordinator. Requires gcsfs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fsspec.asyn import sync
from gcsfs import core

from spark_ckpt.storage.holding import HOLD, sent_once
from spark_ckpt.storage.one_try import answered, delete_each

REQUEST_SECONDS = 30.0
"""Timeout of a request in seconds, including the transfer of its body."""

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

    def delete_objects(self, paths: Sequence[str]) -> None:
        """Deletes objects, several at once; missing objects are ignored.

        Raises:
            OSError: an object could not be deleted. All others were attempted.
        """
        sync(self.loop, delete_each, paths, self._rm_file, FileNotFoundError)

    async def _request(self, method: str, path: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        try:
            return await answered(_once(self, method, path, *args, **kwargs), REQUEST_SECONDS)
        except OSError as e:
            if type(e) is OSError and str(e).startswith("Forbidden"):  # gcsfs has no class for a 403
                raise PermissionError(str(e)) from e
            raise
