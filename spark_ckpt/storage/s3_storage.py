"""Storage on S3 through s3fs."""

from __future__ import annotations

from spark_ckpt.errors import StorageError
from spark_ckpt.storage.base import CreateOutcome, CreateResult
from spark_ckpt.storage.errors import ExclusiveCreateUnsupportedError
from spark_ckpt.storage.object_storage import ObjectStorage, is_refusal

_CONDITION_FAILED = ("PreconditionFailed", "412")
_NOT_IMPLEMENTED = ("NotImplemented", "501")
"""Error codes of S3, or the HTTP status if the response has no body."""

_TOO_BUSY = ("SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "Throttling", "ThrottlingException")
"""Error codes of a store that did not begin with a request. A 503 without a code may come from a proxy, which does not
know."""

_RANGE_NOT_SATISFIABLE = 416


class S3Storage(ObjectStorage):
    """Objects of a bucket. An exclusive create is a conditional put."""

    def _is_final(self, error: Exception) -> bool:
        from botocore.exceptions import ParamValidationError

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
        if code in _TOO_BUSY or is_refusal(_status(error)):
            return CreateResult(CreateOutcome.REFUSED, error)
        return CreateResult(CreateOutcome.UNKNOWN, error)


def _status(error: BaseException) -> int | None:
    """HTTP status of the S3 response that caused an s3fs error."""
    response = getattr(error.__cause__, "response", None)
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if response else None
    return status if isinstance(status, int) else None


def _code(error: Exception) -> str | None:
    """Error code of the S3 response that caused an s3fs error (`botocore.exceptions.ClientError`)."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code")) if response else None
