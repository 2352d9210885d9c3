"""Storage on S3 through s3fs."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from spark_ckpt.storage.remote import FsspecStorage

_CONDITION_FAILED = ("PreconditionFailed", "412")
_NOT_IMPLEMENTED = ("NotImplemented", "501")
"""Error codes of S3. Where an answer has no body, the HTTP status stands for it."""


class S3Storage(FsspecStorage):
    """Objects of a bucket. An exclusive create is a conditional put."""

    @property
    def writes_whole(self) -> bool:
        """True: an object appears with all of the bytes that its request said it has, or not at all."""
        return True

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files, a thousand with one request."""
        if names:
            paths = [self._path(name) for name in names]
            self._retry(names[0], "delete", lambda: self._fs.delete_objects(paths))

    def _is_final(self, error: Exception) -> bool:
        from botocore.exceptions import ParamValidationError  # type: ignore[import-untyped]

        return isinstance(error, ParamValidationError) or super()._is_final(error)

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        code = _code(error)
        if code in _CONDITION_FAILED:  # s3fs says that a file exists only if S3 has named the condition
            return CreateResult(CreateOutcome.LOST)
        if code in _NOT_IMPLEMENTED:
            raise ExclusiveCreateUnsupportedError(self.describe(name), str(error)) from error
        return CreateResult(CreateOutcome.UNKNOWN, error)


def _code(error: Exception) -> str | None:
    """The code of S3's answer that s3fs has made an error of its own from (`botocore.exceptions.ClientError`)."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code")) if response else None
