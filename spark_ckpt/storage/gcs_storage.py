"""Storage on Google Cloud Storage through gcsfs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.remote import FsspecStorage

_WON = CreateOutcome.WON

_FINAL = (400, 401, 403)
"""HTTP statuses of requests that would be rejected again."""

_NO_ANSWER = (408, 499)
"""HTTP statuses below 500 that say nothing about the request."""


class GcsStorage(FsspecStorage):
    """Objects of a bucket. An exclusive create is an upload on the condition that the object has no generation."""

    @property
    def writes_whole(self) -> bool:
        """True: an object appears with all bytes of its upload, or not at all."""
        return True

    def write_chunks(self, name: str, chunks: Callable[[], Iterable[bytes]]) -> None:
        """Writes a file by a resumable upload and replaces any existing one."""
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
        # gcsfs raises HttpError with the status in `code`, or ValueError for a 400.
        return isinstance(error, ValueError) or _status(error) in _FINAL or super()._is_final(error)

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        if self._is_final(error):
            raise StorageError(self.describe(name), "create", error) from error
        status = _status(error)
        if status is not None and 400 <= status < 500 and status not in _NO_ANSWER:
            return CreateResult(CreateOutcome.REFUSED, error)
        return CreateResult(CreateOutcome.UNKNOWN, error)


def _status(error: BaseException) -> int | None:
    """HTTP status in an error of gcsfs (`gcsfs.retry.HttpError`)."""
    code = str(getattr(error, "code", ""))
    return int(code) if code.isdecimal() else None
