"""Storage on S3 through s3fs."""

from __future__ import annotations

from collections.abc import Sequence

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from spark_ckpt.storage.remote import FsspecStorage

_WON = CreateOutcome.WON

_CONDITION_FAILED = ("PreconditionFailed", "412")
_NOT_IMPLEMENTED = ("NotImplemented", "501")
"""Error codes of S3, or the HTTP status if the response has no body."""

_TOO_BUSY = ("SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "Throttling", "ThrottlingException")
"""Error codes of a store that did not begin with a request. A 503 without a code may come from a proxy, which does not
know."""

_RANGE_NOT_SATISFIABLE = 416

_NO_ANSWER = (408, 499)
"""HTTP statuses below 500 that say nothing about the request."""


class S3Storage(FsspecStorage):
    """Objects of a bucket. An exclusive create is a conditional put."""

    @property
    def writes_whole(self) -> bool:
        """True: an object appears with all bytes announced by its request, or not at all."""
        return True

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes files, a thousand per request."""
        if names:
            paths = [self._path(name) for name in names]
            self._retry(names[0], "delete", lambda: self._fs.delete_objects(paths))

    def _overlapping_creates_won(self, name: str) -> bool:
        errors = self._fs.overlapping_creates(self._path(name), b"around" * 100, b"within" * 100)
        outcomes = [_WON if error is None else self._not_created(name, error).outcome for error in errors]
        return outcomes == [_WON, _WON]

    def _is_final(self, error: Exception) -> bool:
        from botocore.exceptions import ParamValidationError  # type: ignore[import-untyped]

        return isinstance(error, ParamValidationError) or super()._is_final(error)

    def _is_past_end(self, error: Exception) -> bool:
        return _status(error) == _RANGE_NOT_SATISFIABLE

    def _failed_create(self, name: str, error: Exception) -> CreateResult:
        if self._is_final(error):
            raise StorageError(self.describe(name), "create", error) from error
        code = _code(error)
        if code in _CONDITION_FAILED:  # s3fs raises FileExistsError only if S3 names the condition
            return CreateResult(CreateOutcome.LOST)
        if code in _NOT_IMPLEMENTED:
            raise ExclusiveCreateUnsupportedError(self.describe(name), str(error)) from error
        if code in _TOO_BUSY or _is_refusal(_status(error)):
            return CreateResult(CreateOutcome.REFUSED, error)
        return CreateResult(CreateOutcome.UNKNOWN, error)


def _is_refusal(status: int | None) -> bool:
    """True for the HTTP status of a request that the store rejects, as 409 for one in conflict with another."""
    return status is not None and 400 <= status < 500 and status not in _NO_ANSWER


def _status(error: BaseException) -> int | None:
    """HTTP status of the S3 response that caused an s3fs error."""
    response = getattr(error.__cause__, "response", None)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if response else None
    return status if isinstance(status, int) else None


def _code(error: Exception) -> str | None:
    """Error code of the S3 response that caused an s3fs error (`botocore.exceptions.ClientError`)."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code")) if response else None
