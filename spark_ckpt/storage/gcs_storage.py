"""Storage on Google Cloud Storage through gcsfs."""

from __future__ import annotations

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.object_storage import ObjectStorage, is_refusal

_FINAL = (400, 401, 403)
"""HTTP statuses of requests that would be rejected again."""


class GcsStorage(ObjectStorage):
    """Objects of a bucket. An exclusive create is an upload on the condition that the object has no generation."""

    def _is_final(self, error: Exception) -> bool:
        # gcsfs raises HttpError with the status in `code`, or ValueError for a 400.
        return isinstance(error, ValueError) or _status(error) in _FINAL or super()._is_final(error)

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        if self._is_final(error):
            raise StorageError(self.describe(name), "create", error) from error
        if is_refusal(_status(error)):
            return CreateResult(CreateOutcome.REFUSED, error)
        return CreateResult(CreateOutcome.UNKNOWN, error)


def _status(error: BaseException) -> int | None:
    """HTTP status in an error of gcsfs (`gcsfs.retry.HttpError`)."""
    code = str(getattr(error, "code", ""))
    return int(code) if code.isdecimal() else None
