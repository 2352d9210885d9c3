"""Storage on Azure Blob Storage through adlfs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.object_storage import ObjectStorage

_FINAL = (400, 401, 403)
"""HTTP statuses of requests that would be rejected again."""


class AzureStorage(ObjectStorage):
    """Blobs of a container. An exclusive create is a conditional put."""

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in blocks and replaces any existing one."""
        path = self._path(name)
        self._retry(name, "write", lambda: self._fs.pipe_chunks(path, chunks()))

    def _is_final(self, error: Exception) -> bool:
        # azure.core: HttpResponseError with `status_code`
        return getattr(error, "status_code", None) in _FINAL or super()._is_final(error)

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        if self._is_final(error):
            raise StorageError(self.describe(name), "create", error) from error
        # aiohttp may have sent the put twice, so that a refusal may be the answer to the second one.
        return CreateResult(CreateOutcome.UNKNOWN, error)
