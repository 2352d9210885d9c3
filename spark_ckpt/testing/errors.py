"""Errors of tests of queries."""

from __future__ import annotations

from spark_ckpt.errors import SparkCkptError


class BatchTimeoutError(SparkCkptError, TimeoutError):
    """A batch of a query under test takes too long.

    Attributes:
        seconds: the limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the batch has not ended within {seconds:g} s. Raise the timeout of the QueryTest, or look into the log"
        )
        self.seconds = seconds


class NotUnderTestError(SparkCkptError, ValueError):
    """A query cannot be tested as requested.

    Attributes:
        reason: cause and remedy.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the query cannot be tested: {reason}")
        self.reason = reason
