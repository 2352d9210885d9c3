"""Storage on Azure Blob Storage through adlfs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.remote import FsspecStorage

_WON = CreateOutcome.WON

_FINAL = (400, 401, 403)
"""HTTP statuses of requests that would be rejected again."""


class AzureStorage(FsspecStorage):
    """Blobs of a container. An exclusive create is a conditional put."""

    @property
    def writes_whole(self) -> bool:
        """True: a blob appears with all bytes of its upload, or not at all."""
        return True

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file in blocks and replaces any existing one."""
        path = self._path(name)
        self._retry(name, "write", lambda: self._fs.pipe_chunks(path, chunks()))

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files, several at once."""
        if names:
            paths = [self._path(name) for name in names]
            self._retry(names[0], "delete", lambda: self._fs.delete_objects(paths))

    def _overlapping_creates_won(self, name: str) -> bool:
        errors = self._fs.overlapping_creates(self._path(name), b"around" * 100, b"within" * 100)
        outcomes = [_WON if error is None else self._not_created(name, error).outcome for error in errors]
        return outcomes == [_WON, _WON]

    def _is_final(self, error: Exception) -> bool:
        # azure.core: HttpResponseError with `status_code`
        return getattr(error, "status_code", None) in _FINAL or super()._is_final(error)

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        if self._is_final(error):
            raise StorageError(self.describe(name), "create", error) from error
        # aiohttp may have sent the put twice, so that a refusal may be the answer to the second one.
        return CreateResult(CreateOutcome.UNKNOWN, error)
