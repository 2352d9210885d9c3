"""Tests of streaming queries: state to begin with, one batch at a time, state and output afterwards, and a clock."""

from __future__ import annotations

from spark_ckpt.testing.errors import BatchTimeoutError, NotUnderTestError
from spark_ckpt.testing.query_test import FIRST_TIME, QueryTest

__all__ = ["FIRST_TIME", "BatchTimeoutError", "NotUnderTestError", "QueryTest"]
