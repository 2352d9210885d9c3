"""Client of Azure Blob Storage of the coordinator. Requires adlfs."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import adlfs
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import BlobServiceClient
from fsspec.asyn import sync, sync_wrapper

from spark_ckpt.storage.holding import HOLD, sent_once
from spark_ckpt.storage.one_try import answered, delete_each

REQUEST_SECONDS = 30.0
"""Timeout of a request in seconds, including the transfer of its body."""

CLIENT: dict[str, Any] = {"retry_total": 0, "connection_timeout": 5, "read_timeout": 10}
"""Settings of a client; timeouts in seconds. The SDK would send a request up to four times, and adlfs has no option for
that."""

_EXISTS = ("BlobAlreadyExists", "ConditionNotMet")
_BLOCK_BYTES = 8 << 20


class OneTryAzureFileSystem(adlfs.AzureBlobFileSystem):  # type: ignore[misc]
    """File system that sends each request once, with a timeout of `REQUEST_SECONDS`: only `FsspecStorage` retries.

    A path is a literal container and name: no character of a name starts a pattern or a version.
    """

    def do_connect(self) -> None:
        """Connects without retries."""
        super().do_connect()
        if self.connection_string is not None:
            self.service_client = BlobServiceClient.from_connection_string(self.connection_string, **CLIENT)
            return
        credential = self.credential or self.account_key
        url = self.account_url if credential else f"{self.account_url}{self.sas_token or ''}"
        self.service_client = BlobServiceClient(url, credential=credential, **CLIENT)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.strip("/")  # adlfs drops a question mark at the end

    def split_path(self, path: str, *_: Any, **__: Any) -> tuple[str, str, None]:  # noqa: ANN401
        """Container and name of a path: `?versionid=` is part of the name."""
        container, _slash, blob = path.lstrip("/").partition("/")
        return container, blob, None

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:  # noqa: ANN401
        is_create = mode == "create"
        try:
            if HOLD.get() is None:
                await answered(self._blob(path).upload_blob(bytes(value), overwrite=not is_create), REQUEST_SECONDS)
            else:
                await answered(self._create_held(path, bytes(value)), REQUEST_SECONDS)
        except ResourceNotFoundError as e:
            raise FileNotFoundError(path) from e
        except HttpResponseError as e:
            # Other conflicts do not say that the blob exists: the container is being deleted, or has a lease.
            if is_create and e.status_code in (409, 412) and getattr(e, "error_code", None) in _EXISTS:
                raise FileExistsError(path) from e
            raise

    pipe_file = sync_wrapper(_pipe_file)

    async def _create_held(self, path: str, data: bytes) -> None:
        """Creates a blob by a request that is held back; `upload_blob` would first read all of it."""
        from azure.storage.blob._generated.models import ModifiedAccessConditions

        await self._blob(path)._client.block_blob.upload(
            content_length=len(data),
            body=sent_once(data),
            modified_access_conditions=ModifiedAccessConditions(if_none_match="*"),
        )

    def pipe_chunks(self, path: str, chunks: Iterable[bytes]) -> None:
        """Writes a blob from chunks, as blocks that are committed at the end. adlfs would publish a part of them."""
        prefix, numbers = uuid.uuid4().hex, count()
        staged: list[str] = []
        for block in _blocks(chunks):
            staged.append(f"{prefix}-{next(numbers):05}")
            sync(self.loop, self._stage, path, staged[-1], block)
        sync(self.loop, self._commit, path, staged)

    async def _stage(self, path: str, block_id: str, data: bytes) -> None:
        try:
            await answered(self._blob(path).stage_block(block_id, data), REQUEST_SECONDS)
        except ResourceNotFoundError as e:
            raise FileNotFoundError(path) from e

    async def _commit(self, path: str, block_ids: Sequence[str]) -> None:
        await answered(
            self._blob(path).commit_block_list([BlobBlock(block_id=each) for each in block_ids]), REQUEST_SECONDS
        )

    def delete_objects(self, paths: Sequence[str]) -> None:
        """Deletes blobs, several at once; missing blobs are ignored.

        Raises:
            OSError, HttpResponseError: a blob could not be deleted. All others were attempted.
        """
        sync(self.loop, delete_each, paths, self._delete, ResourceNotFoundError)

    async def _delete(self, path: str) -> None:
        await answered(self._blob(path).delete_blob(), REQUEST_SECONDS)

    def _blob(self, path: str) -> Any:  # noqa: ANN401  (azure.storage has no types for adlfs)
        container, name, _version = self.split_path(path)
        return self.service_client.get_blob_client(container, name)


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks joined to blocks of at least `_BLOCK_BYTES`, but for the last: a blob has at most 50,000."""
    block = bytearray()
    for chunk in chunks:
        block += chunk
        if len(block) >= _BLOCK_BYTES:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)
